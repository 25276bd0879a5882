// Which view is shown, and what the header says of the index.

import { byId, count } from "./dom.js";
import { leaveLive, enterLive } from "./live.js";
import { startSearch } from "./search.js";
import { knowLeaves } from "./leaves.js";
import { offerCollections } from "./collection.js";

const TITLES = { search: "Hedgerow", live: "Live – Hedgerow" };

function show(view) {
  for (const name of ["search", "live"]) {
    byId(`${name}-view`).hidden = name !== view;
    byId(`to-${name}`).toggleAttribute("aria-current", false);
  }
  byId(`to-${view}`).setAttribute("aria-current", "page");
  document.title = TITLES[view];
  if (view === "live") enterLive();
  else leaveLive();
}

function route() {
  const view = location.hash === "#live" ? "live" : "search";
  if (location.hash !== "#main") show(view);
}

addEventListener("hashchange", route);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});

const topology = await knowLeaves();
if (topology) {
  offerCollections(topology);
  byId("index").textContent =
    `${count(topology.documents)} documents, ${topology.shards.length} shards, ${topology.leaves.length} leaves`;
}
startSearch(topology);
route();
