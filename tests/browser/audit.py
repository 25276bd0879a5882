"""What a person who cannot see a page, or not well, would find missing on it."""

from __future__ import annotations

from typing import Any, Final

USED: Final = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "image", "img"}
USED_ROLES: Final = USED | {"table", "navigation", "search", "region"}

FAINT: Final = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const light = (c) => c.map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    const colour = rgba(getComputedStyle(node).backgroundColor);
    if (colour[3] === 1) return colour.slice(0, 3);
    return over(colour, node.parentElement ? behind(node.parentElement) : [255, 255, 255]);
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || !node.checkVisibility() || node.closest('.unseen, .skip, :disabled')) continue;
    const style = getComputedStyle(node);
    let opacity = 1;
    for (let n = node; n; n = n.parentElement) opacity *= Number(getComputedStyle(n).opacity);
    const back = behind(node);
    const ink = rgba(style.color);
    const [a, b] = [light(over([...ink.slice(0, 3), ink[3] * opacity], back)), light(back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) faint.push(`${text.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return faint;
}"""

CLIPPED: Final = """() => {
  const clipped = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || !node.checkVisibility() || node.closest('.unseen, .skip')) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const is = range.getBoundingClientRect();
    for (let n = node; n; n = n.parentElement) {
      const {overflowX} = getComputedStyle(n);
      if (overflowX === 'visible' || overflowX === 'auto') continue;
      const frame = n.getBoundingClientRect();
      const outside = is.left >= frame.right || is.right <= frame.left
        || is.top >= frame.bottom - 1 || is.bottom <= frame.top + 1;
      const inside = is.left >= frame.left - 1 && is.right <= frame.right + 1;
      if (!outside && !inside) clipped.push(text.slice(0, 30));
    }
    if (is.right > document.documentElement.clientWidth) clipped.push(text.slice(0, 30));
  }
  return clipped;
}"""


def names(page: Any) -> tuple[int, list[str]]:
    """How many things can be used or need a name, and the roles of those that have none."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    found = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and node.get("role", {}).get("value") in USED_ROLES
    ]
    return len(found), [role for role, name in found if not name.strip()]


def faint(page: Any) -> list[str]:
    """Texts with too little contrast, each with its ratio."""
    texts: list[str] = page.evaluate(FAINT)
    return texts


def clipped(page: Any) -> list[str]:
    """Texts of which a part is cut off."""
    texts: list[str] = page.evaluate(CLIPPED)
    return texts
