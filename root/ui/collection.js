// Which collection the page is about: the one in its address, or the root's first.

import { byId, el } from "./dom.js";

const named = new URLSearchParams(location.search).get("collection");

// An address of the API, as it is about that collection.
export const within = (path) => (named === null ? path : `collections/${encodeURIComponent(named)}/${path}`);

// What the page's own addresses carry on.
export const carried = named === null ? {} : { collection: named };

export function offerCollections({ collection, collections }) {
  if (collections.length < 2) return;
  const choice = byId("collection");
  choice.replaceChildren(...collections.map((name) => el("option", { value: name }, name)));
  choice.value = collection;
  choice.addEventListener("change", () => {
    location.assign(`./?${new URLSearchParams({ collection: choice.value })}`);
  });
  byId("collections").hidden = false;
}
