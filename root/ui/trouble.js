// Buttons that trouble a leaf, where the root allows it, and steady questions to see what comes
// of that.

import { byId, el } from "./dom.js";

const EVERY_MS = 100;
const IN_FLIGHT_MAX = 20;
const WORDS = { slow: "Slow", quicken: "Quicken", stop: "Stop", resume: "Resume", kill: "Kill" };

let signature = "";
let failure = "";

// Made again only when there is something else to press: a button keeps the focus meanwhile.
export function troubles(trouble, leaves, node) {
  const now = JSON.stringify([trouble, leaves.map((leaf) => [leaf.leaf, leaf.state === "lost"]), failure]);
  if (now === signature) return [...node.childNodes];
  signature = now;
  const focused = node.contains(document.activeElement) ? document.activeElement.id : null;
  if (focused) requestAnimationFrame(() => byId(focused)?.focus());
  const rows = leaves.map((leaf, i) => el("li", {}, el("span", { class: "leaf-name" }, leaf.leaf), buttons(trouble, leaf, i)));
  return [el("ul", { class: "troubles" }, rows), el("p", { class: "bad", role: "status" }, failure)];
}

function buttons({ deeds, slowed, stopped }, leaf, i) {
  return deeds.map((deed) => {
    const undo = (deed === "slow" && slowed.includes(leaf.url)) || (deed === "stop" && stopped.includes(leaf.url));
    const does = undo ? { slow: "quicken", stop: "resume" }[deed] : deed;
    const gone = leaf.state === "lost" && does !== "resume" && !(does === "kill" && stopped.includes(leaf.url));
    return el(
      "button",
      {
        type: "button",
        id: `trouble-${i}-${deed}`,
        class: undo ? "undo" : "plain",
        "aria-label": `${WORDS[does]} ${leaf.leaf}`,
        disabled: gone,
        onclick: () => order(leaf.url, does),
      },
      WORDS[does],
    );
  });
}

async function order(leaf, does) {
  failure = "";
  try {
    const answer = await fetch("trouble", {
      method: "POST",
      headers: { "content-type": "application/json", "x-hedgerow-trouble": "1" },
      body: JSON.stringify({ leaf, do: does }),
    });
    if (!answer.ok) failure = (await answer.json()).detail;
  } catch {
    failure = "The root does not answer.";
  }
}

// Asks the same again and again, as one impatient person would.
export function load() {
  let timer = 0;
  let inFlight = 0;
  const field = el("input", { id: "steadily-q", value: byId("q").value || "json", maxlength: 1000 });
  const ask = async () => {
    if (inFlight >= IN_FLIGHT_MAX) return;
    inFlight += 1;
    try {
      await fetch(`search?${new URLSearchParams({ q: field.value || "json" })}`);
    } catch {
      // the status above says that the root is away
    } finally {
      inFlight -= 1;
    }
  };
  const toggle = (event) => {
    clearInterval(timer);
    if (event.currentTarget.checked) timer = setInterval(ask, EVERY_MS);
  };
  return el(
    "p",
    { class: "steadily" },
    el("label", {}, el("input", { type: "checkbox", id: "steadily", onchange: toggle }), " Ask ten times a second for "),
    el("label", { class: "unseen", for: "steadily-q" }, "Question that is asked steadily"),
    field,
  );
}
