"""What a score is made of: the parts that the answer tells add up to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.sim.library import Library
from tests.sim.serving import Served, served


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """An index with two text fields and some others."""
    folder: Path = tmp_path_factory.mktemp("library")
    return Library(folder)


@pytest.mark.parametrize(
    "request_of",
    [
        {"q": "json parsing"},
        {"q": '"file like object" xml^3 -csv'},
        {"q": "pars* jsno~1 kind:book year:[2000 TO *]"},
        {"q": "name:dumps words", "combine": "best", "tie_breaker": 0.25},
        {"q": "words function", "combine": "best"},
        {"q": "*"},
        {"q": "xml", "sort": ["-year"]},
    ],
    ids=lambda request: request["q"],
)
def test_the_parts_of_an_explanation_add_up_to_the_score(
    request_of: dict[str, Any], library: Library
) -> None:
    """Of every hit, for every kind of query; and each says on which shard it is."""

    async def body(serving: Served) -> None:
        answer = await serving.client.post("/search", {**request_of, "explain": True})
        hits = answer.json["hits"]
        assert hits
        for hit in hits:
            assert hit["explanation"]
            total = sum(share["score"] for share in hit["explanation"])
            assert total == pytest.approx(hit["score"], rel=1e-5)
            assert 0 <= hit["shard"] < 4

    served(body, index=library)


def test_an_explanation_names_fields_and_terms(library: Library) -> None:
    """As the index has them, and only those that the document has."""

    async def body(serving: Served) -> None:
        request = {"q": "name:dumps parsing zebra pars* year:[1990 TO 2020}", "explain": True}
        best = (await serving.client.post("/search", {**request, "k": 1})).json["hits"][0]
        named = {(share["field"], share["text"]) for share in best["explanation"]}
        assert {("name", "dump"), ("body", "pars"), ("body", "pars*")} <= named
        assert ("year", "[1990 TO 2020}") in named
        assert "zebra" not in str(named)

    served(body, index=library)


def test_nobody_who_does_not_ask_is_told(library: Library) -> None:
    """Hits have no explanation, and leaves make none."""

    async def body(serving: Served) -> None:
        (hit,) = (await serving.client.post("/search", {"q": "json", "k": 1})).json["hits"]
        assert set(hit) == {"id", "score", "fields", "highlights"}

    served(body, index=library)
