"""The document of the API: what it is made of, and that it tells of every route."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from root import requests
from root.catalogue import OPERATIONS
from root.openapi import document, example_targets
from root.reference import served as served_by
from tests.sim.serving import Served, served

EVERYTHING = document([(each.method, each.path) for each in OPERATIONS], "1.0")


def test_every_route_stands_in_the_document_and_nothing_else() -> None:
    """Methods and paths of the application are those of the document it serves."""

    async def body(serving: Served) -> None:
        told = (await serving.client.get("/openapi.json")).json["paths"]
        documented = {(method, path) for path, methods in told.items() for method in methods}
        assert documented == set(served_by(serving.app.routes))
        assert ("post", "/search") in documented

    served(body)


def test_routes_that_are_not_served_are_not_told_of() -> None:
    """Nor the types that only they need."""
    little = document([("get", "/healthz")], "1.0")
    assert list(little["paths"]) == ["/healthz"]
    assert set(little["components"]["schemas"]) == {"Alive"}


def test_the_parameters_are_those_that_are_read() -> None:
    """No parameter of a query string is missing, none is invented, and one is required unless
    another may stand in its place.
    """
    for path, read, required in (
        ("/search", requests._READERS, []),
        ("/suggest", requests._SUGGEST_READERS, ["prefix"]),
    ):
        parameters = EVERYTHING["paths"][path]["get"]["parameters"]
        assert {each["name"] for each in parameters} == set(read)
        assert [each["name"] for each in parameters if each["required"]] == required


def test_parameters_say_how_they_are_written() -> None:
    """Names by comma, conditions and facets as JSON, and nothing may be null."""
    parameters = {
        each["name"]: each for each in EVERYTHING["paths"]["/search"]["get"]["parameters"]
    }
    assert (parameters["sort"]["style"], parameters["sort"]["explode"]) == ("form", False)
    assert "application/json" in parameters["filter"]["content"]
    assert "application/json" in parameters["facets"]["content"]
    assert parameters["k"]["schema"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 1000,
        "default": 10,
    }
    assert "null" not in str(parameters)


@pytest.mark.parametrize("name", sorted(EVERYTHING["components"]["schemas"]))
def test_every_schema_is_one(name: str) -> None:
    """It says what it is for, and keeps to JSON Schema."""
    schema = EVERYTHING["components"]["schemas"][name]
    Draft202012Validator.check_schema(schema)
    assert schema["description"]


def test_every_reference_leads_somewhere() -> None:
    """Schemas and headers that are referred to are there."""

    def references(value: Any) -> list[str]:
        match value:
            case {"$ref": str(target)}:
                return [target]
            case dict():
                return [each for inner in value.values() for each in references(inner)]
            case list():
                return [each for inner in value for each in references(inner)]
            case _:
                return []

    for target in references(EVERYTHING):
        _, *path = target.split("/")
        found: Any = EVERYTHING
        for name in path:
            found = found[name]


def test_examples_are_written_as_a_query_string_has_them() -> None:
    """Lists by comma, JSON escaped, switches in words, what is required beside each."""
    (search,) = [each for each in OPERATIONS if each.name == "search"]
    targets = example_targets(search)
    assert targets[0] == "/search?q=parse%20json"
    assert "/search?q=parse%20json&sort=-kind%2C_id" in targets
    assert "/search?q=parse%20json&trace=true" in targets
    assert "/search?similar_to=json.dumps" in targets
    assert any("filter=%5B%7B%22field%22" in target for target in targets)
    (file,) = [each for each in OPERATIONS if each.name == "page_file"]
    assert example_targets(file) == ["/ui/style.css"]


def test_the_document_is_not_sent_again_to_who_has_it() -> None:
    """304 for the tag that came with it, and the page that shows it is a page."""

    async def body(serving: Served) -> None:
        page = await serving.client.get("/docs")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        first = await serving.client.get("/openapi.json")
        again = await serving.client.request(
            "GET", "/openapi.json", headers=[(b"if-none-match", first.headers["etag"].encode())]
        )
        assert (again.status, again.body) == (304, b"")

    served(body)
