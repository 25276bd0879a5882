"""Requests that nobody would write, made from the API's own document by schemathesis.

Half keep to it, half break it somewhere. A healthy root must answer each as the document says,
and never with an error of its own. Cases are drawn first and sent then, as the root that answers
them lives in virtual time; ``API_CASES`` says how many, of each of both halves.
"""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from bench.simulation.scripted import takes
from root.catalogue import OPERATIONS
from root.config import Settings
from root.openapi import document
from tests.sim.contract import ANYWHERE, Contract
from tests.sim.library import FIELDS, Library
from tests.sim.serving import PLENTY, Served, served

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what a library imports is not what is tested here
    import schemathesis
    from schemathesis.core import NotSet
    from schemathesis.core.result import Ok
    from schemathesis.generation import GenerationMode

CASES: Final = int(os.environ.get("API_CASES", "50"))
TOLD: Final = [each for each in OPERATIONS if each.path != "/trouble"]
ASKING: Final = {
    GenerationMode.POSITIVE: {"/search", "/searches", "/export", "/suggest", "/documents/{id}"},
    GenerationMode.NEGATIVE: {"/search", "/export", "/suggest"},
}
"""The routes that read what they are sent, and those where some of it is wrong: any text may be
an id, and a search among several that is wrong says so in its place."""

_NAMES: Final = [field.name for field in FIELDS]
KNOWN: Final = {
    "fields": [*_NAMES, "nowhere"],
    "highlight": ["name", "body", "nowhere"],
    "sort": [*_NAMES[3:], *(f"-{name}" for name in _NAMES[3:]), "_id", "_score"],
}

LEFT_OUT: Final = {"cursor", "similar_to"}
"""Chance finds no cursor, and no document beside words."""

BODIES: Final = {
    "/search": "SearchRequest",
    "/searches": "MultiSearchRequest",
    "/export": "ExportRequest",
}

WORK_S: Final = 0.00001
HURRIED_MS: Final = 10.0
"""Who gives less time than that may rightly be told that it was not enough."""


class Case(NamedTuple):
    """One request, and the operation that it was made for."""

    method: str
    path: str
    target: str
    sent: bytes
    hurried: bool


def drawn(mode: GenerationMode) -> list[Case]:
    """Draw cases, in turn of the routes; the same ones each time."""
    described = document([(each.method, each.path) for each in TOLD], "0")
    if mode is GenerationMode.POSITIVE:
        described = pointed(described)
    cases: list[Case] = []
    for result in schemathesis.openapi.from_dict(described).get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        if operation.path not in ASKING[mode]:
            continue

        @seed(1)
        @settings(
            max_examples=1 + CASES // 3,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(generation_mode=mode))
        def draw(case: Any) -> None:
            cases.append(made_of(case))

        draw()
    return cases


def pointed(schema: Any) -> Any:
    """Return a schema that asks for words, in fields that there are and now and then in others,
    and for no cursor: what is drawn by chance alone hardly gets past the first check.
    """
    match schema:
        case {"name": "q", "in": "query", "required": False}:
            return {**schema, "required": True}
        case {"name": "highlight" | "fields" | "sort" as name, "schema": dict(given)}:
            return {**schema, "schema": {**given, "items": {"enum": KNOWN[name]}}}
        case dict():
            return {
                name: {"enum": KNOWN["fields"]}
                if name == "field" and "enum" not in value
                else {"type": "array", "items": {"enum": KNOWN[name]}, "maxItems": 3, "minItems": 1}
                if name in KNOWN and "default" in value
                else pointed(value)
                for name, value in schema.items()
                if name not in LEFT_OUT
            }
        case list():
            return [pointed(each) for each in schema if not is_left_out(each)]
        case _:
            return schema


def is_left_out(parameter: Any) -> bool:
    """Whether that is a parameter of a query string that is not to be drawn."""
    return isinstance(parameter, dict) and parameter.get("name") in LEFT_OUT


def made_of(case: Any) -> Case:
    """Write a drawn case as it goes over the wire."""
    named = {name: quote(str(value), safe="") for name, value in case.path_parameters.items()}
    query = urlencode({**case.query}, doseq=True, errors="surrogatepass")
    match case.body:
        case NotSet():
            sent = b""
        case bytes():
            sent = case.body
        case _:
            sent = json.dumps(case.body).encode()
    path = case.operation.path
    asked = case.body if isinstance(case.body, dict) else case.query
    return Case(
        case.method, path, f"{path.format(**named)}?{query}".rstrip("?"), sent, hurried(asked)
    )


def hurried(asked: Mapping[str, Any]) -> bool:
    """Whether a request gives hardly any time."""
    try:
        return float(asked["timeout_ms"]) < HURRIED_MS
    except (KeyError, TypeError, ValueError):
        return False


def fits(contract: Contract, path: str, sent: bytes) -> bool:
    """Whether a body is JSON of the documented shape."""
    try:
        return contract.allows(json.loads(sent), BODIES[path])
    except ValueError:
        return False


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """An index with fields of every type."""
    return Library(tmp_path_factory.mktemp("library"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_generated_requests_are_answered_as_documented(
    mode: GenerationMode, library: Library
) -> None:
    """No fault of the root, no status and no shape that is not in the document, and a body that
    is not of the documented shape is refused.
    """
    cases = drawn(mode)
    assert len(cases) >= CASES
    answered: Counter[int] = Counter()

    async def body(serving: Served) -> None:
        contract = Contract((await serving.client.get("/openapi.json")).json)
        for case in cases:
            answer = await serving.client.request(case.method, case.target, [case.sent])
            assert answer.status < 500 or (case.hurried and answer.status in {503, 504}), case
            method = case.method.lower()
            if method in contract.document["paths"][case.path]:
                contract.check(method, case.path, answer)
            else:
                assert answer.status in ANYWHERE, case
            if method == "post" and not fits(contract, case.path, case.sent):
                assert 400 <= answer.status < 500, case
            answered[answer.status] += 1
        if mode is GenerationMode.POSITIVE:
            assert answered[200] >= len(cases) / 5, answered
        assert answered.total() - answered[200] >= len(cases) / 5, answered
        assert await serving.metric("hedgerow_root_requests_in_flight") == 0
        assert await serving.metric("hedgerow_root_requests_total", status="500") == 0

    served(body, Settings(budget=PLENTY, canary=False), takes(WORK_S), library)
