// The API's page: openapi.json, as people read it. Nothing here knows any route by name.

import { byId, el } from "./dom.js";

const GET = "get";

const nameOf = (reference) => reference.split("/").pop();

// How a schema reads in a table: a type, with what bounds it.
function kind(schema) {
  if (schema.$ref) return [el("a", { href: `#${nameOf(schema.$ref)}` }, nameOf(schema.$ref))];
  if (schema.anyOf) return schema.anyOf.flatMap((one, i) => (i ? [" or ", ...kind(one)] : kind(one)));
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(", ")];
  if (schema.type === "array") return ["list of ", ...(schema.items ? kind(schema.items) : ["anything"])];
  if (schema.type === "object" && typeof schema.additionalProperties === "object") {
    return ["object of ", ...kind(schema.additionalProperties)];
  }
  const { minimum, maximum, exclusiveMinimum, maxLength } = schema;
  const bounds = [
    minimum === undefined ? null : `from ${minimum}`,
    exclusiveMinimum === undefined ? null : `above ${exclusiveMinimum}`,
    maximum === undefined ? null : `to ${maximum}`,
    maxLength === undefined ? null : `at most ${maxLength} characters`,
  ].filter((bound) => bound !== null);
  return [[schema.type ?? "anything", ...bounds].join(" ")];
}

const shown = (value) => (value === undefined ? [] : [el("code", {}, JSON.stringify(value))]);

function table(caption, heads, rows) {
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { "aria-label": caption },
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell)))))));
}

function parameters(list) {
  const rows = list.map((each) => {
    const { schema, example } = each.content?.["application/json"] ?? each;
    const name = [el("code", {}, each.name), each.required ? " (required)" : null];
    return [name, [...kind(schema), each.content ? " as JSON" : null], shown(schema.default), shown(example)];
  });
  return [el("h3", {}, "Parameters"), table("Parameters", ["name", "type", "default", "example"], rows)];
}

function sentBody({ content }) {
  const [[, { schema, examples }]] = Object.entries(content);
  return [
    el("h3", {}, "Body: ", ...kind(schema)),
    ...Object.entries(examples ?? {}).map(([name, { value }]) =>
      el("details", {}, el("summary", {}, name), el("pre", { tabindex: "0" }, JSON.stringify(value, null, 2)))),
  ];
}

function answers(responses) {
  const rows = Object.entries(responses).map(([status, { description, content, headers }]) => [
    [el("code", {}, status)],
    prose(description),
    Object.entries(content ?? {}).flatMap(([media, { schema }]) =>
      [el("div", {}, media.includes("json") ? kind(schema) : null, " ", el("span", { class: "quiet" }, media))]),
    [Object.keys(headers ?? {}).join(", ")],
  ]);
  return [el("h3", {}, "Answers"), table("Answers", ["status", "when", "body", "headers"], rows)];
}

// Text with code in backticks.
const prose = (text) => text.split(/`+/).map((part, i) => (i % 2 ? el("code", {}, part) : part));

// Where a GET can be looked at as it stands: its path with what is required, from the examples.
function tryable(path, method, list) {
  if (method !== GET) return null;
  const needed = list.filter((each) => each.required);
  if (needed.some((each) => each.example === undefined)) return null;
  const parts = new URLSearchParams();
  let target = path.slice(1);
  for (const each of needed) {
    if (each.in === "path") target = target.replace(`{${each.name}}`, encodeURIComponent(each.example));
    else parts.set(each.name, each.example);
  }
  const query = parts.toString();
  const address = query ? `${target}?${query}` : target;
  return el("p", {}, "Try ", el("a", { href: address || "./" }, `/${address}`));
}

function operation(path, method, each) {
  const list = each.parameters ?? [];
  return el("section", { class: "operation", id: each.operationId, "aria-labelledby": `${each.operationId}-title` },
    el("h2", { id: `${each.operationId}-title` }, el("span", { class: "method" }, method.toUpperCase()), ` ${path}`),
    el("p", {}, prose(each.summary)),
    tryable(path, method, list),
    list.length ? parameters(list) : null,
    each.requestBody ? sentBody(each.requestBody) : null,
    answers(each.responses));
}

function schema(name, each) {
  const needed = new Set(each.required ?? []);
  const rows = Object.entries(each.properties ?? {}).map(([member, inner]) => [
    [el("code", {}, member), needed.has(member) ? " (required)" : null],
    kind(inner),
    inner.default === null ? [] : shown(inner.default),
  ]);
  return el("section", { class: "operation", id: name, "aria-labelledby": `${name}-title` },
    el("h2", { id: `${name}-title` }, name),
    el("p", {}, prose(each.description)),
    rows.length ? table(name, ["member", "type", "default"], rows) : null);
}

function show({ info, paths, components }) {
  byId("version").textContent = `version ${info.version}`;
  byId("status").replaceChildren(...prose(info.description));
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, each]) => [path, method, each]));
  byId("reference").append(
    el("ul", { class: "index", "aria-label": "Routes" }, operations.map(([path, method, each]) =>
      el("li", {}, el("a", { href: `#${each.operationId}` }, `${method.toUpperCase()} ${path}`)))),
    ...operations.map((one) => operation(...one)),
    el("h2", {}, "Types"),
    ...Object.entries(components.schemas).map((one) => schema(...one)));
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

try {
  const answer = await fetch("openapi.json");
  if (!answer.ok) throw new Error(`the root answers ${answer.status}`);
  show(await answer.json());
} catch (error) {
  byId("status").textContent = `The document cannot be shown: ${error.message}`;
}
