// Small charts of plain boxes: they scale with the page, and a screen reader gets a sentence.

import { count, el, ms, percent } from "./dom.js";

const LEAST_MS = 1;
const MOST_MS = 1000;
const OVER_MAX = 4; // a burst may be many times what is allowed on average: it is cut off

// Counts over bars whose edges grow by the same factor, on a logarithmic axis.
export function distribution({ edges_ms: edges, counts }, { p50, p95, p99, count: requests }) {
  const low = Math.min(LEAST_MS, 10 ** Math.floor(Math.log10(edges[0] ?? LEAST_MS)));
  const high = Math.max(MOST_MS, 10 ** Math.ceil(Math.log10(edges.at(-1) ?? MOST_MS)));
  const at = (value) => (100 * Math.log(value / low)) / Math.log(high / low);
  const most = Math.max(1, ...counts);
  const bars = counts.map((n, i) =>
    el("span", {
      class: "column",
      style: {
        left: `${at(edges[i])}%`,
        width: `${at(edges[i + 1]) - at(edges[i])}%`,
        // the root of it, so that the few slow ones, which matter here, are seen beside the many
        height: `${100 * Math.sqrt(n / most)}%`,
      },
      title: `${ms(edges[i])} to ${ms(edges[i + 1])} ms: ${count(n)}`,
    }),
  );
  const marks = Object.entries({ p50, p95, p99 })
    .filter(([, value]) => value !== null)
    .map(([name, value], i) => el("span", { class: `quantile step-${i}`, style: { left: `${at(value)}%` } }, el("span", {}, name)));
  const ticks = [];
  for (let tick = low; tick <= high * 1.01; tick *= 10) {
    ticks.push(el("span", { class: "tick number", style: { left: `${at(tick)}%` } }, tick >= 1000 ? `${tick / 1000} s` : `${Number(tick.toPrecision(1))} ms`));
  }
  const words = requests
    ? `${count(requests)} requests: half within ${ms(p50)} ms, 95 % within ${ms(p95)} ms, 99 % within ${ms(p99)} ms`
    : "No requests in the last minute";
  return [
    el("div", { class: "plot", role: "img", "aria-label": words }, bars, marks),
    el("div", { class: "scale", "aria-hidden": "true" }, ticks),
    el("p", { class: "note" }, requests ? "Heights are square roots of counts." : words),
  ];
}

// A value a second, oldest first, against a limit.
export function strip(values, limit, words) {
  const most = Math.max(0.01, 2 * limit, Math.min(OVER_MAX * limit, Math.max(0, ...values)));
  const columns = values.map((value) =>
    el("span", { class: value > limit ? "over" : null, style: { height: `${Math.min(100, (100 * value) / most)}%` }, title: percent(value) }),
  );
  return el(
    "div",
    { class: "strip", role: "img", "aria-label": words },
    columns,
    el("span", { class: "limit", style: { bottom: `${(100 * limit) / most}%` } }, el("span", {}, "allowed")),
  );
}
