// The heat map: a tile a leaf, shaded by how many times the fleet's median a leg takes there.

import { el, ms } from "./dom.js";

const SECONDS = 60;
const DENSE = 48;
const SLOW = 3; // as root/probation.py has it
const LEGS_MIN = 20; // the smoothed time is that of about so many: of fewer it may be old, or chance
const SHADES = [1.5, SLOW, 10];
const STATES = {
  well: { sign: "●", words: "well" },
  probation: { sign: "◐", words: "on probation" },
  lost: { sign: "○", words: "lost" },
};

export function heatMap() {
  const node = el("ul", { class: "leaves" });
  const tiles = new Map();

  // Returns the leaves, each with how many times the median it takes: null where nobody knows.
  function draw(leaves) {
    node.classList.toggle("dense", leaves.length > DENSE);
    const known = leaves.filter((leaf) => leaf.latency_ms !== null && leaf.legs >= LEGS_MIN);
    const median = middle(known.filter((leaf) => leaf.state === "well").map((leaf) => leaf.latency_ms));
    const judged = leaves.map((leaf) => ({ ...leaf, times: known.includes(leaf) && median ? leaf.latency_ms / median : null }));
    for (const leaf of judged) {
      if (!tiles.has(leaf.url)) tiles.set(leaf.url, tile(node));
      tiles.get(leaf.url)(leaf);
    }
    return judged;
  }
  return { node, draw };
}

// The slowest of the leaves with traffic, if it stands out.
export function slowest(judged) {
  const slow = judged.filter((leaf) => leaf.state === "well" && leaf.times >= SLOW);
  return slow.sort((a, b) => b.times - a.times)[0];
}

function middle(values) {
  const sorted = values.sort((a, b) => a - b);
  return sorted[(sorted.length - 1) >> 1];
}

function shade({ state, times }) {
  if (state === "lost") return "lost";
  return String(SHADES.filter((limit) => times >= limit).length);
}

function tile(list) {
  const past = [];
  const name = el("span", { class: "leaf-name" });
  const state = el("span", { class: "leaf-state" });
  const figure = el("span", { class: "leaf-ms number" });
  const flight = el("span", { class: "leaf-flight quiet" });
  const notice = el("span", { class: "leaf-notice" });
  const strip = el("span", { class: "leaf-strip", "aria-hidden": "true" });
  const node = el("li", { class: "leaf" }, name, figure, state, flight, notice, strip);
  list.append(node);
  return (leaf) => {
    past.push(shade(leaf));
    if (past.length > SECONDS) past.shift();
    node.dataset.heat = past.at(-1);
    node.dataset.state = leaf.state;
    node.title = [leaf.url, `${leaf.shards} shards`, `${leaf.legs} legs in the last minute`, leaf.problem, leaf.notice].filter(Boolean).join("\n");
    name.textContent = leaf.leaf.replace(/^https?:\/\//, "");
    figure.replaceChildren(ms(leaf.latency_ms), leaf.latency_ms === null ? "" : el("span", { class: "unit" }, " ms"));
    state.textContent = `${STATES[leaf.state].sign} ${STATES[leaf.state].words}`;
    flight.textContent = `${leaf.in_flight} in flight`;
    notice.hidden = !leaf.notice;
    notice.textContent = leaf.notice ? "its times are not real" : "";
    strip.replaceChildren(...past.map((heat) => el("span", { "data-heat": heat })));
  };
}
