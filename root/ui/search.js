// The search view: the form, the hits, and beside them the race that found them.

import { byId, count, el, ms, plural, rootCan } from "./dom.js";
import { carried, within } from "./collection.js";
import { highlighted } from "./highlight.js";
import { suggest } from "./suggest.js";
import { waterfall } from "./waterfall.js";

const PAGE = 10;
const TITLES = ["name", "title", "headline"];
const SNIPPETS_MAX = 3;
const TEXT_MAX = 240;
const FACETS_MAX = 4;
const VALUES_SHOWN = 5;

const EXAMPLES = ["parse json", '"context manager"', "name:open", "+thread -lock"];

let asked = null;
let counted = []; // fields whose values are counted
let kept = []; // the filter, which stays from one query to the next until somebody takes it off

export function startSearch(topology) {
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    go(byId("q").value.trim(), 0);
  });
  addEventListener("popstate", fromAddress);
  const kept = (topology?.fields ?? []).filter(({ type }) => type === "keyword" || type === "boolean");
  counted = kept.map(({ name }) => name).slice(0, FACETS_MAX);
  if (rootCan("suggest")) suggest(byId("q"), byId("suggestions"), (q) => go(q, 0));
  if (topology) offerExamples(topology);
  fromAddress();
}

function offerExamples(topology) {
  // the documentation of Python, which is what there is as long as nobody brought an index
  if (!topology.fields.some((field) => field.name === "signature")) return;
  byId("examples").replaceChildren(...EXAMPLES.map((q) => el("li", {}, linkTo(q))));
}

function linkTo(q, text = q) {
  const href = address(q, 0, kept);
  const click = (event) => {
    event.preventDefault();
    go(q, 0);
  };
  return el("a", { href, onclick: click }, text);
}

function address(q, offset, filter = []) {
  const parameters = new URLSearchParams({ ...carried, q });
  if (offset) parameters.set("offset", offset);
  if (filter.length) parameters.set("filter", JSON.stringify(filter));
  return `./?${parameters}`;
}

function fromAddress() {
  const parameters = new URLSearchParams(location.search);
  const q = parameters.get("q") ?? "";
  const offset = Number(parameters.get("offset")) || 0;
  byId("q").value = q;
  if (q) ask(q, offset, conditions(parameters.get("filter")));
  else keep(q, []);
}

function conditions(text) {
  try {
    const filter = JSON.parse(text ?? "[]");
    return Array.isArray(filter) ? filter : [];
  } catch {
    return [];
  }
}

function go(q, offset, filter = kept) {
  if (!q) return;
  byId("q").value = q;
  history.pushState(null, "", address(q, offset, filter));
  ask(q, offset, filter);
}

async function ask(q, offset, filter) {
  asked?.abort();
  asked = new AbortController();
  keep(q, filter);
  const parameters = new URLSearchParams({ q, k: PAGE, offset, trace: "1" });
  if (filter.length) parameters.set("filter", JSON.stringify(filter));
  if (counted.length) parameters.set("facets", JSON.stringify(Object.fromEntries(counted.map(counting))));
  byId("answer").setAttribute("aria-busy", "true");
  try {
    const response = await fetch(within(`search?${parameters}`), { signal: asked.signal });
    const body = await response.json();
    show({ q, offset, filter }, response, body);
  } catch (error) {
    if (error.name !== "AbortError") complain("The root does not answer.");
  } finally {
    byId("answer").removeAttribute("aria-busy");
  }
}

function leaveWelcome() {
  byId("welcome").hidden = true;
  byId("search-view").classList.remove("start");
}

function complain(...words) {
  leaveWelcome();
  byId("answer").hidden = true;
  byId("status").replaceChildren(el("span", { class: "bad" }, ...words));
}

const counting = (field) => [field, { type: "terms", field, size: VALUES_SHOWN }];

function show(search, response, body) {
  if (!body.hits) {
    const again = response.headers.get("retry-after");
    complain(`${body.title}: ${body.detail}`, again ? ` Try again in ${again} s.` : "");
    return;
  }
  leaveWelcome();
  byId("answer").hidden = false;
  byId("status").replaceChildren(...summary(body));
  byId("missing").replaceChildren(...missing(body), ...warned(body.warnings));
  byId("facets").replaceChildren(...facets(body.facets ?? {}, search));
  byId("hits").start = search.offset + 1;
  byId("hits").replaceChildren(...body.hits.map(hit));
  byId("pages").replaceChildren(...pages(search, body));
  byId("race").replaceChildren(...waterfall(body));
}

function summary({ total, coverage, took_ms: took, did_you_mean: better }) {
  const atLeast = total.relation === "gte" ? "at least " : "";
  const found = total.value ? `${atLeast}${plural(total.value, "hit")}` : "Nothing found";
  const parts = [el("strong", {}, found), took ? ` in ${ms(took)} ms` : ""];
  const searched = coverage.complete
    ? `all ${plural(coverage.documents, "document")} searched`
    : `${count(coverage.searched)} of ${plural(coverage.documents, "document")} searched`;
  parts.push(el("span", { class: "sep", "aria-hidden": "true" }, "·"), searched);
  if (better) parts.push(". Did you mean ", linkTo(better), "?");
  const jump = () => byId("race-title").scrollIntoView();
  parts.push(el("button", { type: "button", class: "link to-race", onclick: jump }, "See the race"));
  return parts;
}

const REASONS = {
  timeout: "did not answer in time",
  no_replica: "has no live replica",
  error: "failed",
  refused: "refused",
};

function warned(warnings) {
  if (!warnings?.length) return [];
  const items = warnings.map(({ position, message }) => el("li", {}, `At character ${position + 1}: ${message}`));
  return [el("div", { class: "notice" }, el("ul", {}, items))];
}

function missing({ coverage, detail }) {
  if (coverage.complete) return [];
  const byReason = Map.groupBy
    ? Map.groupBy(coverage.missing, (one) => one.reason)
    : new Map(coverage.missing.map((one) => [one.reason, coverage.missing.filter((m) => m.reason === one.reason)]));
  const items = [...byReason].map(([reason, ones]) =>
    el("li", {}, `shard ${ones.map((one) => one.shard).join(", ")}: ${REASONS[reason] ?? reason}`),
  );
  const head = `${coverage.shards - coverage.answered} of ${plural(coverage.shards, "shard")} are missing from this answer`;
  return [
    el("div", { class: "notice", role: "alert" }, el("strong", {}, head), el("ul", {}, items), detail ? el("p", {}, detail) : null),
  ];
}

// --- facets: what the hits have in common, and how to keep to it ---

function facets(all, search) {
  return Object.entries(all)
    .filter(([, facet]) => facet.buckets?.length)
    .map(([name, { buckets, other }]) => {
      const items = buckets.map(({ value, count: times }) =>
        el("li", {}, keepTo(name, value, search), " ", el("span", { class: "number quiet" }, count(times))),
      );
      if (other) items.push(el("li", { class: "quiet" }, "others ", el("span", { class: "number" }, count(other))));
      return el("section", { class: "facet", "aria-label": name }, el("h3", {}, name), el("ul", {}, items));
    });
}

function keepTo(field, value, { q, filter }) {
  const narrowed = [...filter.filter((one) => one.field !== field), { field, equals: value }];
  return el("button", { type: "button", class: "link", onclick: () => go(q, 0, narrowed) }, String(value));
}

// Whatever comes of a query, its filter is seen, and can be taken off.
function keep(q, filter) {
  kept = filter;
  byId("chosen").replaceChildren(...chosen(q, filter));
}

function chosen(q, filter) {
  if (!filter.length) return [];
  const chips = filter.map((condition) => {
    const rest = filter.filter((one) => one !== condition);
    const { field, ...is } = condition ?? {}; // of an address, it may be anything
    const words = "equals" in is ? `${field}: ${is.equals}` : `${field}: ${JSON.stringify(is)}`;
    return el("button", { type: "button", class: "plain", "aria-label": `No longer only ${words}`, onclick: () => go(q, 0, rest) }, `${words} ✕`);
  });
  return [el("p", { class: "chosen" }, "Only ", chips)];
}

function hit({ id, score, fields, highlights }) {
  const titled = TITLES.find((name) => fields[name] || highlights[name]);
  const title = titled ? said(titled, fields, highlights) : [String(id)];
  const others = Object.keys(highlights).filter((name) => name !== titled);
  const marked = others.filter((name) => highlights[name].includes("<em>"));
  const shown = (marked.length ? marked : others).slice(0, SNIPPETS_MAX);
  const snippets = shown.map((name) =>
    el("p", { class: "snippet" }, el("span", { class: "field" }, name), " ", highlighted(highlights[name])),
  );
  if (!snippets.length) {
    const text = Object.entries(fields).filter(([name, value]) => name !== titled && typeof value === "string");
    const longest = text.sort((a, b) => b[1].length - a[1].length)[0];
    if (longest) snippets.push(el("p", { class: "snippet" }, cut(longest[1])));
  }
  const head = el("h3", {}, el("span", {}, title), el("span", { class: "score number", title: "score" }, score.toFixed(2)));
  const name = titled ? el("p", { class: "id" }, String(id)) : null;
  return el("li", { class: "hit" }, head, name, snippets, everything(fields));
}

function said(name, fields, highlights) {
  return highlights[name] ? highlighted(highlights[name]) : [String(fields[name])];
}

function cut(text) {
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)} …` : text;
}

function everything(fields) {
  const rows = Object.entries(fields).flatMap(([name, value]) => [
    el("dt", {}, name),
    el("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value)),
  ]);
  if (!rows.length) return null;
  return el("details", {}, el("summary", {}, "All fields"), el("dl", {}, rows));
}

function pages({ q, offset, filter }, { hits, total }) {
  const turn = (to, words) => {
    const click = () => {
      go(q, to, filter);
      byId("status").scrollIntoView({ block: "nearest" });
    };
    return el("button", { type: "button", class: "plain", onclick: click }, words);
  };
  const buttons = [];
  if (offset > 0) buttons.push(turn(Math.max(0, offset - PAGE), "Previous"));
  if (offset + hits.length < total.value && hits.length) buttons.push(turn(offset + PAGE, "Next"));
  return buttons;
}

