// The race of one query, from its trace (docs/api.md): a row a shard on one axis of time, its
// attempts as bars. Kind shows as colour and letter, fate as pattern and sign.

import { el, ms, plural } from "./dom.js";
import { nameOf } from "./leaves.js";

const KINDS = {
  primary: { letter: "", words: "first attempt" },
  hedge: { letter: "H", words: "hedge" },
  tied: { letter: "T", words: "tied copy" },
  failover: { letter: "F", words: "failover" },
  probe: { letter: "P", words: "probe" },
};
const FATES = {
  won: { sign: "✓", words: "won" },
  cancelled: { sign: "✕", words: "cancelled" },
  lost: { sign: "–", words: "too late" },
  failed: { sign: "!", words: "failed" },
  in_flight: { sign: "…", words: "still under way" },
};
const PHASES = { canary: "try one", search: "search", fetch: "fetch" };
const ROWS_MAX = 40;
const TICKS_MAX = 5;
const MARK_SHARE = 9; // per cent of the axis that a letter and a sign take

export function waterfall({ trace = [], took_ms: took, attempts }) {
  if (!trace.length) return [el("p", { class: "quiet" }, "Nobody was asked.")];
  const legs = legsOf(trace);
  const width = Math.max(took, ...trace.map((phase) => phase.decided_ms), 0.1);
  const rows = legs.map((leg) => row(leg, width));
  const slowest = legs.reduce((worst, leg) => (leg.took > worst.took ? leg : worst), legs[0]);
  rows[legs.indexOf(slowest)].classList.add("slowest");
  const list = el("ol", { class: "legs", onkeydown: walk }, rows);
  const parts = [
    el("p", { class: "told" }, told(legs, slowest, attempts)),
    el("div", { class: "chart" }, axis(trace, width), list),
    legend(legs),
    byLeaf(trace),
  ];
  if (rows.length > ROWS_MAX) parts.splice(2, 0, shortened(list, legs, rows));
  return parts;
}

// --- what the trace says ---

function legsOf(trace) {
  const legs = new Map();
  for (const phase of trace) {
    for (const attempt of phase.attempts) {
      if (!legs.has(attempt.shard)) legs.set(attempt.shard, { shard: attempt.shard, tries: [], took: 0 });
      legs.get(attempt.shard).tries.push({ ...attempt, phase: phase.phase, started: phase.started_ms });
    }
    for (const leg of legs.values()) close(leg, phase);
  }
  return [...legs.values()].sort((a, b) => a.shard - b.shard);
}

// An attempt that was called off has no end of its own yet: it counts until its race was over.
function close(leg, phase) {
  const tries = leg.tries.filter((one) => one.phase === phase.phase);
  const winner = tries.find((one) => one.fate === "won");
  for (const one of tries) {
    one.until = one.ended_ms ?? winner?.ended_ms ?? phase.decided_ms;
    one.raced = tries.length > 1;
  }
  if (phase.phase === "fetch" || !tries.length) return;
  leg.winner = winner;
  leg.took = (winner ? winner.ended_ms : phase.decided_ms) - phase.started_ms;
}

function told(legs, slowest, { hedged, hedge_wins: wins, failed_over: failovers }) {
  const parts = [`${plural(legs.length, "shard")} asked. `];
  if (hedged) {
    const won = wins ? (wins === hedged ? (wins === 1 ? "it won" : "all won") : `${wins} won`) : "none won";
    parts.push(el("strong", {}, plural(hedged, "hedge")), ` sent, ${won}. `);
  } else parts.push("Nobody was late enough for a hedge. ");
  if (failovers) parts.push(`${plural(failovers, "failover")} after an error or a loss. `);
  if (slowest.winner) {
    parts.push(`Shard ${slowest.shard} came last, from ${nameOf(slowest.winner.replica)} after ${ms(slowest.took)} ms.`);
  }
  return parts;
}

// --- drawing ---

function axis(trace, width) {
  const at = (value) => `${(100 * value) / width}%`;
  const ticks = steps(width).map((value) => el("span", { class: "tick number", style: { left: at(value) } }, String(value)));
  const phases = trace.map((phase) =>
    el(
      "span",
      {
        class: "phase",
        style: { left: at(phase.started_ms), width: at(phase.decided_ms - phase.started_ms) },
        title: `${PHASES[phase.phase] ?? phase.phase}: ${ms(phase.started_ms)} to ${ms(phase.decided_ms)} ms`,
      },
      el("span", { class: "phase-name" }, PHASES[phase.phase] ?? phase.phase),
    ),
  );
  return el(
    "div",
    { class: "axis", "aria-hidden": "true" },
    el("span", { class: "leg-shard" }, "shard"),
    el("span", { class: "axis-track" }, el("span", { class: "phases" }, phases), el("span", { class: "ticks" }, ticks)),
    el("span", { class: "leg-ms" }, "ms"),
    el("span", { class: "leg-leaf" }, "leaf"),
  );
}

function steps(width) {
  const rough = width / TICKS_MAX;
  const decade = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * decade).find((n) => n >= rough);
  const values = [];
  for (let i = 0; i * step <= width * 0.97; i += 1) values.push(Number((i * step).toPrecision(3)));
  return values;
}

function row(leg, width) {
  const id = `leg-${leg.shard}`;
  const lanes = laid(leg.tries);
  const track = el(
    "span",
    { class: "track", style: { "--lanes": lanes.length } },
    lanes.flatMap((lane, i) => lane.flatMap((one, j) => bar(one, lane[j + 1], i, width))),
  );
  const button = el(
    "button",
    { type: "button", class: "leg", "aria-expanded": "false", "aria-controls": id, "aria-label": described(leg), onclick: open },
    el("span", { class: "leg-shard number" }, String(leg.shard)),
    track,
    el("span", { class: "leg-ms number" }, leg.winner ? ms(leg.took) : "missing"),
    el("span", { class: "leg-leaf" }, leg.winner ? nameOf(leg.winner.replica) : "–"),
  );
  return el("li", {}, button, el("div", { class: "times", id, hidden: true }, times(leg)));
}

// Attempts that overlap lie below each other.
function laid(tries) {
  const lanes = [];
  for (const one of [...tries].sort((a, b) => a.sent_ms - b.sent_ms)) {
    const lane = lanes.find((taken) => taken.at(-1).until <= one.sent_ms);
    if (lane) lane.push(one);
    else lanes.push([one]);
  }
  return lanes;
}

function bar(one, next, lane, width) {
  const left = (100 * one.sent_ms) / width;
  const length = (100 * (one.until - one.sent_ms)) / width;
  const sign = one.raced || one.fate !== "won" ? FATES[one.fate].sign : "";
  const mark = `${KINDS[one.kind].letter}${sign}`;
  const room = 100 * ((next?.sent_ms ?? width) / width) - left - length;
  const drawn = el("span", {
    class: "try",
    "data-kind": one.kind,
    "data-fate": one.fate,
    "data-phase": one.phase,
    style: { left: `${left}%`, width: `${length}%`, "--lane": lane },
  });
  if (!mark) return [drawn];
  const place = room < MARK_SHARE ? "inside" : "after";
  return [drawn, el("span", { class: "sign", "data-place": place, style: { left: `${left + length}%`, "--lane": lane } }, mark)];
}

function described(leg) {
  const searched = leg.tries.filter((one) => one.phase !== "fetch");
  const end = leg.winner
    ? `answered by ${nameOf(leg.winner.replica)} after ${ms(leg.took)} milliseconds`
    : "not answered";
  const others = searched
    .filter((one) => one.raced)
    .map((one) => `${KINDS[one.kind].words} on ${nameOf(one.replica)} ${FATES[one.fate].words}`);
  return [`Shard ${leg.shard} ${end}`, ...others].join(", ");
}

function times(leg) {
  const head = ["", "leaf", "sent", "ended", "queue", "service", "way", "fate"];
  const titles = { way: "what is neither queue nor service: the network, and the loops at both ends" };
  const rows = leg.tries.map((one) => {
    const ended = one.ended_ms !== null;
    const way = one.fate === "won" ? Math.max(0, one.ended_ms - one.sent_ms - one.queue_ms - one.service_ms) : null;
    const numbers = [one.sent_ms, one.ended_ms, ended ? one.queue_ms : null, ended ? one.service_ms : null, way];
    const fate = `${FATES[one.fate].sign} ${FATES[one.fate].words}${one.reason ? ` (${one.reason})` : ""}`;
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, `${PHASES[one.phase] ?? one.phase}, ${KINDS[one.kind].words}`),
      el("td", {}, nameOf(one.replica)),
      numbers.map((value) => el("td", { class: "number" }, ms(value))),
      el("td", {}, fate),
    );
  });
  return el(
    "table",
    {},
    el("caption", { class: "unseen" }, `Attempts for shard ${leg.shard}, times in milliseconds from the arrival of the query`),
    el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col", title: titles[name] }, name)))),
    el("tbody", {}, rows),
  );
}

function open({ currentTarget: button }) {
  const opened = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(opened));
  document.getElementById(button.getAttribute("aria-controls")).hidden = !opened;
}

function walk(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const rows = [...event.currentTarget.querySelectorAll("li:not([hidden]) .leg")];
  const next = rows[rows.indexOf(document.activeElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function legend(legs) {
  const kinds = new Set(legs.flatMap((leg) => leg.tries.map((one) => one.kind)));
  const fates = new Set(legs.flatMap((leg) => leg.tries.map((one) => one.fate)));
  const key = (kind, fate, words) =>
    el("li", {}, el("span", { class: "try key", "data-kind": kind, "data-fate": fate, "aria-hidden": "true" }), words);
  const items = Object.keys(KINDS)
    .filter((kind) => kinds.has(kind))
    .map((kind) => key(kind, "won", [KINDS[kind].letter, KINDS[kind].words].filter(Boolean).join(" ")));
  for (const fate of Object.keys(FATES)) {
    if (fate !== "won" && fates.has(fate)) items.push(key("primary", fate, `${FATES[fate].sign} ${FATES[fate].words}`));
  }
  return el("ul", { class: "legend", "aria-label": "Legend" }, items);
}

function shortened(list, legs, rows) {
  const slowest = new Set([...legs].sort((a, b) => b.took - a.took).slice(0, ROWS_MAX));
  rows.forEach((one, i) => one.toggleAttribute("hidden", !slowest.has(legs[i])));
  const all = (event) => {
    rows.forEach((one) => one.removeAttribute("hidden"));
    event.currentTarget.remove();
  };
  return el("button", { type: "button", class: "plain", onclick: all }, `The slowest ${ROWS_MAX} are shown. Show all ${rows.length}`);
}

// --- the same by leaf: which one was slow ---

function byLeaf(trace) {
  const leaves = new Map();
  for (const phase of trace) {
    for (const one of phase.phase === "fetch" ? [] : phase.attempts) {
      const took = (one.ended_ms ?? phase.decided_ms) - one.sent_ms;
      if (!leaves.has(one.replica)) leaves.set(one.replica, { asked: 0, won: 0, took: [] });
      const leaf = leaves.get(one.replica);
      leaf.asked += 1;
      leaf.won += one.fate === "won";
      leaf.took.push({ took, whole: one.fate === "won" || one.fate === "lost" });
    }
  }
  const worst = ([, leaf]) => Math.max(...leaf.took.map((one) => one.took));
  // what was called off would have taken longer
  const said = ({ took, whole }) => (whole ? ms(took) : `> ${ms(took)}`);
  const rows = [...leaves].sort((a, b) => worst(b) - worst(a)).map(([address, { asked, won, took }]) => {
    const sorted = took.sort((a, b) => a.took - b.took);
    const cells = [asked, won, said(sorted[sorted.length >> 1]), said(sorted.at(-1))];
    return el("tr", {}, el("th", { scope: "row" }, nameOf(address)), cells.map((cell) => el("td", { class: "number" }, String(cell))));
  });
  const head = ["leaf", "asked", "won", "median ms", "slowest ms"];
  return el(
    "table",
    { class: "by-leaf" },
    el("caption", {}, "By leaf, slowest first"),
    el("thead", {}, el("tr", {}, head.map((name, i) => el("th", { scope: "col", class: i ? "number" : null }, name)))),
    el("tbody", {}, rows),
  );
}
