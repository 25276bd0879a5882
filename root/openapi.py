"""The document of the API (OpenAPI 3.1), made of the types that validate requests.

What a struct allows is written down by the library that enforces it, so the document cannot
promise anything else. Plain synchronous code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from root.bodies import SCHEMAS
from root.catalogue import JSON, OPERATIONS, Operation, Reply

TRACEPARENT: Final = "traceparent"

ABOUT: Final = (
    "All answers but pages are JSON. An error is `application/problem+json` (RFC 9457), but of "
    "`/readyz`; 404 for a path that is not here and 405 for a method have that form too. Every "
    "answer has a `traceparent`, and a request that has one joins that trace."
)

HEADERS: Final[Mapping[str, Any]] = {
    "Retry-After": {
        "description": "When to try again, in whole seconds.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    },
    "ETag": {
        "description": "Names what was sent, for `If-None-Match`.",
        "required": True,
        "schema": {"type": "string"},
    },
    TRACEPARENT: {
        "description": "The trace, and the root's span in it (W3C Trace Context).",
        "required": True,
        "schema": {"type": "string", "pattern": "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"},
    },
}


def document(served: Collection[tuple[str, str]], version: str) -> dict[str, Any]:
    """Return the document of a root that serves these methods and paths, in lower case."""
    operations = [each for each in OPERATIONS if (each.method, each.path) in served]
    schemas = _schemas(operations)
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method] = _operation(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hedgerow",
            "version": version,
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": schemas, "headers": dict(HEADERS)},
    }


def example_targets(operation: Operation) -> list[str]:
    """Return paths, with their query strings, that show a GET: one for each parameter.

    Each has what is required beside it, or stands in its place.
    """
    values = {name: quote(value, safe="") for name, (_, value) in operation.path_is.items()}
    path = operation.path.format(**values)
    if operation.query is None:
        return [path]
    written = {name: _written(value) for name, value in operation.example.items()}
    needed = {name: text for name, text in written.items() if name == operation.required}
    rest = {name: text for name, text in written.items() if name not in needed}
    alone = "&".join(f"{name}={text}" for name, text in needed.items())
    other = operation.instead
    return [
        f"{path}?{alone}",
        *(f"{path}?{alone}&{name}={text}" for name, text in rest.items()),
        *(f"{path}?{name}={_written(value)}" for name, value in other.items()),
    ]


def _schemas(operations: Iterable[Operation]) -> dict[str, Any]:
    types: dict[type[msgspec.Struct], None] = {}
    for each in operations:
        types |= {one: None for one in (each.query, each.body) if one is not None}
        types |= {one: None for reply in each.replies.values() for one in reply.all_types}
    _, components = msgspec.json.schema_components(types, ref_template=SCHEMAS)
    return components


def _operation(operation: Operation, schemas: Mapping[str, Any]) -> dict[str, Any]:
    written: dict[str, Any] = {"operationId": operation.name, "summary": operation.about}
    parameters = [*_path_parameters(operation), *_query_parameters(operation, schemas)]
    if parameters:
        written["parameters"] = parameters
    if operation.body is not None:
        media: dict[str, Any] = {"schema": _ref(operation.body)}
        media["examples"] = {name: {"value": body} for name, body in operation.bodies.items()}
        written["requestBody"] = {"required": True, "content": {JSON: media}}
    written["responses"] = {
        str(status): _reply(reply) for status, reply in sorted(operation.replies.items())
    }
    return written


def _ref(struct: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": SCHEMAS.format(name=struct.__name__)}


def _reply(reply: Reply) -> dict[str, Any]:
    refs = [_ref(struct) for struct in reply.types]
    headers = {
        name: {"$ref": f"#/components/headers/{name}"} for name in (TRACEPARENT, *reply.headers)
    }
    written: dict[str, Any] = {"description": reply.about, "headers": headers}
    if reply.media:
        shape = refs[0] if len(refs) == 1 else {"anyOf": refs}
        written["content"] = {
            media: {"schema": shape if refs and "json" in media else {"type": "string"}}
            for media in reply.media
        }
        if not refs and JSON in reply.media:
            written["content"] = {JSON: {"schema": {"type": "object"}}}
    return written


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": about,
            "schema": {"type": "string", "minLength": 1},
            "example": example,
        }
        for name, (about, example) in operation.path_is.items()
    ]


def _query_parameters(operation: Operation, schemas: Mapping[str, Any]) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    members = schemas[operation.query.__name__]["properties"]
    return [
        _parameter(name, schema, operation)
        for name, schema in members.items()
        if name not in operation.without
    ]


def _parameter(name: str, schema: Mapping[str, Any], operation: Operation) -> dict[str, Any]:
    """Describe how a member is written in a query string: names by comma, values as JSON."""
    required = name == operation.required and not operation.instead
    examples = {**operation.instead, **operation.example}
    written: dict[str, Any] = {"name": name, "in": "query", "required": required}
    alone = _without_null(schema)
    match alone:
        case {"type": "array", "items": {"type": "string"}}:
            written |= {"style": "form", "explode": False, "schema": alone}
        case {"type": "array" | "object"}:
            written["content"] = {JSON: {"schema": alone}}
        case _:
            written["schema"] = alone
    if name in examples:
        target = written.get("content", {JSON: written})[JSON]
        target["example"] = examples[name]
    return written


def _without_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter is given or left out; no text means null."""
    left = {name: value for name, value in schema.items() if (name, value) != ("default", None)}
    match left.pop("anyOf", None):
        case None:
            return left
        case choices:
            one = [choice for choice in choices if choice != {"type": "null"}]
            return {**one[0], **left}


def _written(value: Any) -> str:
    """Return a value as it stands in a query string."""
    match value:
        case bool():
            return str(value).lower()
        case [str(), *_]:
            return quote(",".join(value))
        case list() | dict():
            return quote(msgspec.json.encode(value).decode())
        case _:
            return quote(str(value))
