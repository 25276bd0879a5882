// The live view: one snapshot a second from GET /live, drawn.

import { byId, count, el, ms, percent } from "./dom.js";
import { distribution, strip } from "./charts.js";
import { learnNames } from "./leaves.js";
import { heatMap, slowest } from "./heat.js";
import { load, troubles } from "./trouble.js";

const RETRY_MS = 10000;
const SHARDS_FOR_95 = 20;
const ROWS = { one_leaf: "one random leaf", most_leaves: "95 % of leaves", all_leaves: "100 % of leaves" };

let source = null;
let retry = 0;
let panels = null;
let watching = false;

export function enterLive() {
  watching = true;
  panels ??= build();
  if (!document.hidden) connect();
}

export function leaveLive() {
  watching = false;
  disconnect();
}

// A view that nobody looks at costs nothing.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) disconnect();
  else if (watching) connect();
});

function connect() {
  if (source) return;
  source = new EventSource("live");
  source.onmessage = (event) => draw(JSON.parse(event.data));
  source.onerror = () => {
    say("bad", "No word from the root. Trying again.");
    if (source.readyState !== EventSource.CLOSED) return;
    disconnect();
    retry = setTimeout(connect, RETRY_MS);
  };
}

function disconnect() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

function say(kind, ...words) {
  const text = words.map((word) => word.textContent ?? word).join("");
  const status = byId("live-status");
  if (status.textContent === text && status.dataset.kind === kind) return; // a reader would say it again
  status.dataset.kind = kind;
  status.replaceChildren(...words);
}

function build() {
  const panel = (title, note, ...content) =>
    el("section", { class: "panel", "aria-label": title }, el("h2", {}, title), note ? el("p", { class: "note" }, note) : null, ...content);
  const made = {
    figures: el("dl", { class: "figures" }),
    table: el("tbody"),
    distribution: el("div", { class: "distribution" }),
    hedging: el("div", { class: "hedging" }),
    tailNote: el("p", { class: "note" }),
    leaves: heatMap(),
    trouble: el("div"),
    load: load(),
  };
  const head = ["milliseconds", "p50", "p95", "p99"].map((name, i) => el("th", { scope: "col", class: i ? "number" : null }, name));
  const table = el("table", { class: "tail", "aria-label": "Percentiles in milliseconds" }, el("thead", {}, el("tr", {}, head)), made.table);
  made.troublePanel = panel(
    "Trouble a leaf",
    "On this machine only. Ask steadily, then slow, stop or kill a leaf, and watch the figures above.",
    made.load,
    made.trouble,
  );
  byId("live").replaceChildren(
    made.figures,
    el(
      "div",
      { class: "panels" },
      panel("Leaves", "Time of a leg, smoothed. The shade says how many times the fleet's median that is, of leaves that were asked enough in the last minute; the strip is the last minute.", made.leaves.node),
      panel("When so many leaves of a query have answered", "From the start of its fan-out, measured at the root, last minute.", table, made.tailNote),
      panel("What requests took", "From arrival to answer, last minute.", made.distribution),
      panel("Hedging against its budget", "Attempts beyond one a leg, last minute.", made.hedging),
      made.troublePanel,
    ),
  );
  made.leaves.node.closest(".panel").classList.add("wide");
  made.hedging.closest(".panel").classList.add("wide");
  made.troublePanel.classList.add("wide");
  return made;
}

function draw(snapshot) {
  const { minute, hedging, leaves } = snapshot;
  learnNames(leaves);
  const judged = panels.leaves.draw(leaves);
  panels.figures.replaceChildren(...figures(snapshot));
  panels.table.replaceChildren(...Object.entries(ROWS).map(([name, words]) => tableRow(words, minute.fan_outs[name])));
  const shards = Math.max(0, ...snapshot.collections.map((collection) => collection.shards));
  panels.tailNote.textContent = shards < SHARDS_FOR_95 ? `95 % of ${shards} shards are all of them.` : "";
  panels.distribution.replaceChildren(...distribution(minute.distribution, minute.requests));
  panels.hedging.replaceChildren(...budget(minute, hedging));
  panels.troublePanel.hidden = !snapshot.trouble;
  if (snapshot.trouble) panels.trouble.replaceChildren(...troubles(snapshot.trouble, leaves, panels.trouble));
  judge(snapshot, judged);
}

// One sentence: what somebody who has just come wants to know.
function judge({ collections, minute }, leaves) {
  const inState = (state) => leaves.filter((leaf) => leaf.state === state);
  if (!collections.some(({ generation }) => generation)) return say("bad", "No leaf that holds anything is connected.");
  const lacking = collections.map((one) => lacks(one, collections.length > 1)).filter(Boolean);
  if (lacking.length) return say("bad", `${lacking.join(" ")} Answers are incomplete.`);
  const sentences = inState("lost").map((leaf) => `${short(leaf)} is lost: ${leaf.problem}.`);
  sentences.push(...inState("probation").map((leaf) => `${short(leaf)} is on probation${pace(leaf)}. It gets nothing but probes until they are as quick as its peers' legs.`));
  const slow = slowest(leaves);
  if (slow) sentences.push(`${short(slow)} is slow${pace(slow)}.`);
  if (sentences.length) return say("warn", sentences.join(" "));
  if (!minute.requests.count) return say("quiet", "All leaves are well. Nobody has searched in the last minute.");
  return say("good", "All leaves are well, and none stands out.");
}

// What a collection lacks, in a sentence; nothing, if it is whole.
function lacks({ collection, generation, uncovered }, named) {
  const of = named ? ` of ${collection}` : "";
  if (!generation) return `No connected leaf holds anything${of}.`;
  return uncovered.length ? `No live replica of shard ${uncovered.join(", ")}${of}.` : "";
}
const pace = ({ latency_ms: latency, times }) => (times === null ? "" : `: ${ms(latency)} ms a leg, ${times.toFixed(times < 10 ? 1 : 0)} times the fleet's median`);

const short = (leaf) => leaf.leaf.replace(/^https?:\/\//, "");

function figures({ minute, in_flight: inFlight, collections, leaves }) {
  const shards = collections.reduce((sum, collection) => sum + collection.shards, 0);
  const uncovered = collections.reduce((sum, collection) => sum + collection.uncovered.length, 0);
  const { first, extra } = minute.attempts;
  const rate = minute.seconds ? minute.requests.count / minute.seconds : 0;
  const well = leaves.filter((leaf) => leaf.state === "well").length;
  const all = [
    ["requests a second", rate >= 10 ? rate.toFixed(0) : rate.toFixed(1), null],
    ["p50", ms(minute.requests.p50), "ms"],
    ["p99", ms(minute.requests.p99), "ms"],
    ["in work", count(inFlight), null],
    ["extra attempts", first ? percent(extra / first) : "–", null],
    ["shards live", `${shards - uncovered}/${shards}`, null],
    ["leaves well", `${well}/${leaves.length}`, null],
  ];
  return all.map(([name, value, unit]) =>
    el("div", {}, el("dt", {}, name), el("dd", { class: "number" }, value, unit && value !== "–" ? el("span", { class: "unit" }, ` ${unit}`) : null)),
  );
}

function tableRow(words, row) {
  const cells = ["p50", "p95", "p99"].map((name) => el("td", { class: "number" }, ms(row[name])));
  return el("tr", {}, el("th", { scope: "row" }, words), cells);
}

const RESTING = {
  push_back: "Hedging rests: a leaf has pushed back.",
  errors: "Hedging rests: too many attempts fail.",
};

function budget({ attempts, history }, hedging) {
  const { first, extra, hedges, hedge_wins: wins, denied } = attempts;
  const share = first ? extra / first : 0;
  const allowed = hedging.max_extra_load;
  const shares = history.first.map((n, i) => (n ? history.extra[i] / n : 0));
  const facts = [
    ["allowed", percent(allowed)],
    ["used", first ? percent(share) : "–"],
    ["hedges", count(hedges)],
    ["of them won", count(wins)],
    ["denied", count(denied)],
    ["policy", hedging.policy],
    ["saved up", `${hedging.tokens.toFixed(0)} of ${hedging.burst.toFixed(0)}`],
  ];
  return [
    strip(shares, allowed, `Extra attempts each second of the last minute, ${percent(share)} in all, ${percent(allowed)} allowed`),
    el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", { class: "number" }, value)))),
    hedging.resting ? el("p", { class: "note" }, el("strong", {}, RESTING[hedging.resting])) : "",
  ];
}
