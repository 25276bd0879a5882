"""Comparing a page with the right one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from bench.client import Answer, Hit
from bench.experiments.agree import counts_equal, difference, score_error, whole
from bench.queries import Asked

COUNTED = {"n": {"count": 3}}
WANTED = Answer("complete", (Hit("a", 2.0), Hit("b", 1.0)), 7, facets=COUNTED)


def test_equal_pages_have_no_difference() -> None:
    """Rounding is no difference, and is measured."""
    found = Answer("complete", (Hit("a", 2.0), Hit("b", 1.0005)), 7, facets=COUNTED)
    assert difference(found, WANTED) == ""
    assert score_error(found, WANTED) == pytest.approx(0.0005)


@pytest.mark.parametrize(
    ("found", "how"),
    [
        (Answer("partial", WANTED.hits, 7, "shard 3"), "partial: shard 3"),
        (Answer("complete", WANTED.hits, 6), "total 6, not 7"),
        (Answer("complete", WANTED.hits, 7, facets={"n": {"count": 2}}), "facet n: {'count': 2}"),
        (
            Answer("complete", (Hit("b", 2.0), Hit("a", 1.0)), 7, facets=COUNTED),
            "place 1: b, not a",
        ),
        (Answer("complete", WANTED.hits[:1], 7, facets=COUNTED), "1 hits, not 2"),
        (
            Answer("complete", (Hit("a", 2.0), Hit("b", 1.1)), 7, facets=COUNTED),
            "scores differ by 0.1",
        ),
    ],
)
def test_the_first_difference_is_said(found: Answer, how: str) -> None:
    """Fate, total, facets, order, length and scores, in this order."""
    assert difference(found, WANTED).startswith(how)


def test_facets_are_equal_but_for_the_last_digits_of_doubles() -> None:
    """A count is exact; a sum of doubles depends on the order; buckets are all there."""
    facet = {"count": 3, "sum": 0.30000000000000004, "buckets": [{"from": 1.0, "count": 2}]}
    wanted = Answer("complete", (), 3, facets={"f": facet})

    def found(**changed: Any) -> Answer:
        return Answer("complete", (), 3, facets={"f": {**facet, **changed}})

    assert counts_equal(found(sum=0.3), wanted)
    assert not counts_equal(found(sum=0.3001), wanted)
    assert not counts_equal(found(sum=None), wanted)
    assert not counts_equal(found(count=4), wanted)
    assert not counts_equal(found(buckets=[]), wanted)
    assert not counts_equal(Answer("complete", (), 3), wanted)
    assert not counts_equal(Answer("complete", (), 4, facets=wanted.facets), wanted)


def test_pages_are_asked_for_one_after_the_other() -> None:
    """By the cursor of the one before, until there are enough or none; a page that fails is the
    answer.
    """
    sent: list[Mapping[str, Any]] = []
    pages = {
        None: Answer("complete", (Hit("a", 3.0),), 3, facets=COUNTED, next="one"),
        "one": Answer("complete", (Hit("b", 2.0),), 3, next="two"),
        "two": Answer("complete", (Hit("c", 1.0),), 3),
    }

    async def ask(body: Mapping[str, Any]) -> Answer:
        sent.append(body)
        return pages[body.get("cursor")]

    def asked(count: int) -> Answer:
        return asyncio.run(whole(ask, Asked("x", selection={"facets": {"n": {}}}, pages=count)))

    assert asked(9).ids == ("a", "b", "c")
    assert asked(9).facets == COUNTED
    assert asked(2).ids == ("a", "b")
    assert [body.get("cursor") for body in sent] == [None, "one", "two"] * 2 + [None, "one"]
    pages["one"] = Answer("timeout")
    assert asked(3).fate == "timeout"
