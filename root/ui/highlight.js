// A highlight is escaped text with <em> around what matched (docs/api.md). It is taken apart here
// and put together as nodes, so that whatever else stands in it is shown and not obeyed.

import { el } from "./dom.js";

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

function decoded(text) {
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|([a-z]{2,4}));/gi, (whole, hex, decimal, name) => {
    if (name) return ENTITIES[name.toLowerCase()] ?? whole;
    const code = hex ? parseInt(hex, 16) : parseInt(decimal, 10);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

export function highlighted(html) {
  const nodes = [];
  for (const [i, part] of html.split(/<em>(.*?)<\/em>/s).entries()) {
    if (!part) continue;
    nodes.push(i % 2 ? el("mark", {}, decoded(part)) : document.createTextNode(decoded(part)));
  }
  return nodes;
}
