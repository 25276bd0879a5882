"""What the document of the API promises, held against an answer.

The types there allow members that they do not name, so that clients outlive new ones; here a
member without a name is a fault of the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson
from jsonschema import Draft202012Validator

from root.catalogue import NDJSON
from tests.sim.serving import Answer

ANYWHERE: Final = {404, 405}
"""What a path that is not here, and a method that a path has not, are told."""


class Contract:
    """One document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self._components = {"schemas": closed(document["components"]["schemas"])}

    def check(self, method: str, path: str, answer: Answer) -> None:
        """Assert that an answer is one that the document tells of."""
        operation = self.document["paths"][path][method]
        told = operation["responses"].get(str(answer.status))
        assert told is not None, (answer.status, answer.body[:300])
        for name in told["headers"]:
            value = answer.headers.get(name.lower())
            assert value is not None, name
            header = self.document["components"]["headers"][name]["schema"]
            self._fits(int(value) if header["type"] == "integer" else value, header)
        if "content" not in told:
            assert not answer.body
            return
        medium = answer.headers["content-type"].partition(";")[0]
        schema = told["content"][medium]["schema"]
        if medium == NDJSON:
            for line in answer.body.splitlines():
                self._fits(orjson.loads(line), schema)
            return
        self._fits(answer.json if "json" in medium else answer.body.decode(), schema)

    def fits(self, value: Any, name: str) -> None:
        """Assert that a value is one of the named schema."""
        self._fits(value, {"$ref": f"#/components/schemas/{name}"})

    def allows(self, value: Any, name: str) -> bool:
        """Whether a value is one of the named schema."""
        whole = {"$ref": f"#/components/schemas/{name}", "components": self._components}
        return Draft202012Validator(whole).is_valid(value)

    def _fits(self, value: Any, schema: Mapping[str, Any]) -> None:
        whole = {**schema, "components": self._components}
        faults = [
            f"{e.json_path}: {e.message}" for e in Draft202012Validator(whole).iter_errors(value)
        ]
        assert not faults, faults[:5]


def closed(schema: Any) -> Any:
    """Return a schema that allows no member that it does not name."""
    match schema:
        case {"properties": dict(), **rest} if "additionalProperties" not in rest:
            inner = {name: closed(value) for name, value in schema.items()}
            return {**inner, "additionalProperties": False}
        case dict():
            return {name: closed(value) for name, value in schema.items()}
        case list():
            return [closed(value) for value in schema]
        case _:
            return schema
