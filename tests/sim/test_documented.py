"""The documents of the API: every example in them is sent, and is answered as they say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

import orjson
import pytest

from root.catalogue import OPERATIONS, Operation
from root.openapi import example_targets
from tests.sim.contract import Contract
from tests.sim.library import Library
from tests.sim.serving import Served, served
from tests.test_docs import read, section

PAGE: Final = read("api.md")
"""``/trouble`` is not among what is sent: it is there on request only."""

GETS: Final = [each for each in OPERATIONS if each.method == "get"]
ELLIPSIS: Final = "…"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The index that examples are about."""
    return Library(tmp_path_factory.mktemp("library"))


async def contract_of(serving: Served) -> Contract:
    """What the root that serves says of itself."""
    return Contract((await serving.client.get("/openapi.json")).json)


def blocks(text: str, language: str) -> list[str]:
    """The listings of a part of a page."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)


def without_ellipses(value: Any) -> Any:
    """A listing's value as it would be in full: members and items named … stand for more."""
    match value:
        case dict():
            return {k: without_ellipses(v) for k, v in value.items() if k != ELLIPSIS}
        case list():
            return [without_ellipses(v) for v in value if v != ELLIPSIS]
        case _:
            return value


@pytest.mark.parametrize("operation", GETS, ids=lambda each: each.name)
def test_every_example_of_a_get_is_answered(operation: Operation, library: Library) -> None:
    """200, and the body is of the shape that the document says."""

    async def body(serving: Served) -> None:
        contract = await contract_of(serving)
        for target in example_targets(operation):
            answer = await serving.client.get(target)
            assert answer.status == 200, (target, answer.body)
            contract.check("get", operation.path, answer)

    served(body, index=library)


def test_every_example_of_a_body_is_answered(library: Library) -> None:
    """200, the body is as the document says, and each finds something."""

    async def body(serving: Served) -> None:
        contract = await contract_of(serving)
        media = contract.document["paths"]["/search"]["post"]["requestBody"]["content"]
        examples = media["application/json"]["examples"]
        assert len(examples) >= 5
        for name, example in examples.items():
            contract.fits(example["value"], "SearchRequest")
            answer = await serving.client.post("/search", example["value"])
            assert answer.status == 200, (name, answer.body)
            contract.check("post", "/search", answer)
            assert answer.json["hits"], name

    served(body, index=library)


def test_every_example_of_several_searches_is_answered(library: Library) -> None:
    """The whole is 200, and so is the body that the page shows."""

    async def body(serving: Served) -> None:
        contract = await contract_of(serving)
        media = contract.document["paths"]["/searches"]["post"]["requestBody"]["content"]
        told = media["application/json"]["examples"]
        examples = {name: each["value"] for name, each in told.items()}
        part = section(PAGE, "Several searches at once: `POST /searches`")
        (shown,) = re.findall(r"/searches -d '([^']+)'", part)
        examples["page"] = orjson.loads(shown)
        assert {"two", "one_fails", "page"} <= set(examples)
        for name, example in examples.items():
            contract.fits(example, "MultiSearchRequest")
            answer = await serving.client.post("/searches", example)
            assert answer.status == 200, (name, answer.body)
            contract.check("post", "/searches", answer)
            failed = ["error" in each for each in answer.json["answers"]]
            assert any(failed) == (name == "one_fails"), name

    served(body, index=library)


def test_every_example_of_an_export_is_answered(library: Library) -> None:
    """To its end, and so is the one that the page shows."""

    async def body(serving: Served) -> None:
        contract = await contract_of(serving)
        media = contract.document["paths"]["/export"]["post"]["requestBody"]["content"]
        examples = [each["value"] for each in media["application/json"]["examples"].values()]
        examples += map(orjson.loads, re.findall(r"/export -d '([^']+)'", PAGE))
        assert len(examples) >= 3
        for example in examples:
            contract.fits(example, "ExportRequest")
            answer = await serving.client.post("/export", example)
            assert answer.status == 200, (example, answer.body)
            contract.check("post", "/export", answer)
            *hits, last = map(orjson.loads, answer.body.splitlines())
            assert hits
            assert last["end"]["documents"] == len(hits)

    served(body, index=library)


def test_the_ends_of_an_export_on_the_page_are_of_the_documented_shape() -> None:
    """One that has come to its end, and one that could not go on."""

    async def body(serving: Served) -> None:
        contract = await contract_of(serving)
        end, error = blocks(section(PAGE, "Exporting: `POST /export`"), "json")
        contract.fits(orjson.loads(end), "ExportEnd")
        contract.fits(orjson.loads(error), "ExportError")

    served(body)


def typed() -> list[str]:
    """Every query in the table of what a person types."""
    table = section(PAGE, "What a person types")
    cells = [row.split(" | ")[0] for row in re.findall(r"(?m)^\| (`.*)$", table)]
    return [query for cell in cells for query in re.findall(r"`([^`]+)`", cell)]


def requests_of_the_page() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every request body that the page shows, or a search with the part of one."""
    for (listing,) in [blocks(section(PAGE, "Query trees"), "json")]:
        yield "tree", {"query": orjson.loads(listing)}
    for (listing,) in [blocks(section(PAGE, "Filters"), "json")]:
        conditions = orjson.loads(listing)
        yield "filter", {"q": "*", "filter": conditions}
        yield from (("condition", {"q": "*", "filter": [each]}) for each in conditions)
    for (listing,) in [blocks(section(PAGE, "Facets"), "json")]:
        yield "facets", {"q": "*", "facets": orjson.loads(listing)}
    (order,) = re.findall(r'`("sort": \[[^`]+\])`', section(PAGE, "Sorting"))
    yield "sort", {"q": "*", **orjson.loads(f"{{{order}}}")}
    for sent in re.findall(r"/(?:search|export) -d '([^']+)'", PAGE):
        yield "curl", orjson.loads(sent)
    for command in re.findall(r"(?m)^curl -G .*$", PAGE):
        pairs = [each.split("=", 1) for each in re.findall(r"--data-urlencode '([^']+)'", command)]
        yield "curl -G", {n: v if n == "q" else orjson.loads(v) for n, v in pairs}


def test_what_the_page_says_a_person_types_is_read_as_it_stands(library: Library) -> None:
    """With ``strict``: each query of the table is one of the language."""

    async def body(serving: Served) -> None:
        contract = await contract_of(serving)
        queries = typed()
        assert len(queries) >= 20
        for query in queries:
            answer = await serving.client.get(f"/search?strict=1&q={quote(query)}")
            assert answer.status == 200, (query, answer.body)
            contract.check("get", "/search", answer)

    served(body, index=library)


def test_every_request_on_the_page_is_answered(library: Library) -> None:
    """200, of a shape that the document tells of, and the request is of its shape too."""

    async def body(serving: Served) -> None:
        contract = await contract_of(serving)
        requests = [*requests_of_the_page()]
        assert {name for name, _ in requests} >= {"tree", "filter", "facets", "sort", "curl"}
        for name, request in requests:
            contract.fits(request, "SearchRequest")
            answer = await serving.client.post("/search", request)
            assert answer.status == 200, (name, request, answer.body)
            contract.check("post", "/search", answer)
        for target in re.findall(r"127\.0\.0\.1:8080(/[^' ]*)'", PAGE):
            assert (await serving.client.get(target)).status == 200

    served(body, index=library)


@pytest.mark.parametrize(
    ("heading", "schema"),
    [
        ("The answer", "SearchAnswer"),
        ("A snapshot", "LiveAnswer"),
        ("Suggestions while typing", "SuggestAnswer"),
        ("Several searches at once: `POST /searches`", "MultiSearchAnswer"),
    ],
)
def test_every_answer_on_the_page_is_of_the_documented_shape(heading: str, schema: str) -> None:
    """An answer that the page shows is one that a root could give."""

    async def body(serving: Served) -> None:
        contract = await contract_of(serving)
        listings = blocks(section(PAGE, heading), "json")
        assert listings
        for listing in listings:
            contract.fits(without_ellipses(orjson.loads(listing)), schema)

    served(body)
