// Making nodes. Text becomes text nodes, never HTML: what a hit says cannot become code.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "style") {
      for (const [property, set] of Object.entries(value)) node.style.setProperty(property, set);
    } else if (typeof value === "function") {
      node.addEventListener(name.slice(2), value);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

// el("button", {class: "quiet", onclick: go, style: {width: "3%"}}, "Text", otherNode)
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export const byId = (id) => document.getElementById(id);

// --- numbers, as people read them ---

export function ms(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 10000) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 100) return value.toFixed(0);
  return value >= 1 || value === 0 ? value.toFixed(1) : value.toFixed(2);
}

export function percent(share) {
  return share < 0.1 ? `${(100 * share).toFixed(1)} %` : `${(100 * share).toFixed(0)} %`;
}

export const count = (value) => Number(value).toLocaleString("en");

export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// --- what the root can do, see root/page.py ---

export function rootCan(feature) {
  const meta = document.querySelector('meta[name="hedgerow-features"]');
  return meta.content.split(" ").includes(feature);
}
