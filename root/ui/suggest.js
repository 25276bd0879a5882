// Suggestions while typing: a combobox with a list, as the ARIA authoring practices have it.

import { within } from "./collection.js";
import { count, el } from "./dom.js";

const PAUSE_MS = 120;
const SHOWN = 8;
const PREFIX_MAX = 256; // docs/api.md

export function suggest(input, list, choose) {
  let timer = 0;
  let asked = null;
  let active = -1;

  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", list.id);
  close();

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE_MS);
  });
  input.addEventListener("keydown", pressed);
  input.addEventListener("blur", close);
  input.form.addEventListener("submit", close);

  async function look() {
    const prefix = input.value.trimStart().slice(-PREFIX_MAX);
    asked?.abort();
    if (!prefix) return close();
    asked = new AbortController();
    try {
      const answer = await fetch(within(`suggest?${new URLSearchParams({ prefix, k: SHOWN })}`), { signal: asked.signal });
      const body = answer.ok ? await answer.json() : {};
      open(body.suggestions ?? []);
    } catch {
      close();
    }
    return undefined;
  }

  function open(found) {
    active = -1;
    list.replaceChildren(...found.map(option));
    list.hidden = !found.length || document.activeElement !== input;
    input.setAttribute("aria-expanded", String(!list.hidden));
    input.removeAttribute("aria-activedescendant");
  }

  function option(entry, i) {
    const { text } = entry;
    const times = entry.documents === undefined ? null : el("span", { class: "number quiet" }, count(entry.documents));
    // mousedown comes before the blur that closes the list
    const take = (event) => {
      event.preventDefault();
      close();
      choose(text);
    };
    return el("li", { role: "option", id: `suggestion-${i}`, "data-text": text, onmousedown: take }, el("span", {}, text), times);
  }

  function close() {
    clearTimeout(timer);
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function pressed(event) {
    if (list.hidden) return;
    const options = [...list.children];
    if (event.key === "Escape") {
      event.preventDefault(); // it would empty the field as well
      close();
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      active = (active + step + options.length + (active < 0 && step < 0 ? 1 : 0)) % options.length;
      options.forEach((one, i) => one.setAttribute("aria-selected", String(i === active)));
      input.setAttribute("aria-activedescendant", options[active].id);
    }
    if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      const text = options[active].dataset.text;
      close();
      choose(text);
    }
  }
}
