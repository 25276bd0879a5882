"""Facets of shards are added up in any order and batching, and say what they do not know."""

from __future__ import annotations

from functools import reduce
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_data.manifest import Field
from leaf.broken import BrokenAnswer
from leaf.selection import (
    BUCKETS_MAX,
    DISTINCT_EXACT_MAX,
    CalendarCount,
    Count,
    DistinctCount,
    HistogramCount,
    StatsCount,
    TermsCount,
)
from leaf.sketch import STANDARD_ERROR, hashed
from root import facets as f
from root.errors import BadRequest
from root.facets import Distinct, Facet, Intervals, Stats, Terms
from root.merge import Unreadable
from root.selection import (
    DateHistogramRequest,
    DistinctRequest,
    FacetRequest,
    HistogramRequest,
    StatsRequest,
    TermsRequest,
)

FIELDS = (
    Field("kind", "keyword"),
    Field("n", "integer"),
    Field("x", "float"),
    Field("at", "date"),
)

counts = st.integers(1, 50)
terms = st.builds(
    lambda pairs, floor: Terms.read(list(pairs), list(pairs.values()), floor),
    st.dictionaries(st.sampled_from("abcdef"), counts),
    st.integers(0, 3),
)
intervals = st.builds(Intervals, st.dictionaries(st.integers(-3, 3), counts))
numbers = st.integers(-(2**70), 2**70) | st.floats(-1e30, 1e30)
stats = st.builds(
    lambda values: Stats(len(values), min(values), max(values), (sum(values),)),
    st.lists(numbers, min_size=1, max_size=5),
) | st.just(Stats())
few = st.sampled_from([1, 2, 3, 100, DISTINCT_EXACT_MAX - 1, DISTINCT_EXACT_MAX])
distinct = st.builds(
    lambda count, start: reduce(
        Distinct.plus, [Distinct(frozenset(range(start * 2**40, start * 2**40 + count)))]
    ),
    few,
    st.integers(0, 3),
)


@pytest.mark.parametrize("parts", [terms, intervals, stats, distinct])
def test_parts_add_up_in_any_order_and_batching(parts: st.SearchStrategy[Any]) -> None:
    """Adding is associative and commutative, and nothing counted adds nothing."""

    @given(st.lists(parts, min_size=1, max_size=6), st.integers(0, 2**32))
    def check(several: list[Any], seed: int) -> None:
        rng = Random(seed)
        wanted = answered(reduce(lambda one, other: one.plus(other), several))
        left = list(several)
        rng.shuffle(left)
        while len(left) > 1:
            at = rng.randrange(len(left) - 1)
            left[at : at + 2] = [left[at].plus(left[at + 1])]
        assert answered(left[0]) == wanted

    check()


def answered(facet: Facet) -> Any:
    """A facet as an answer shows it."""
    match facet:
        case Terms():
            return facet.body("keyword", 3)
        case Stats():
            return facet.body("float")
        case Distinct():
            return facet.body()
        case _:
            return facet


def test_the_commonest_values_come_first_and_equal_ones_by_value() -> None:
    """What is not shown is counted as other."""
    whole = Terms.read(["b", "c"], [2, 1], 0).plus(Terms.read(["a", "c"], [2, 4], 0))
    assert whole.body("keyword", 2) == {
        "buckets": [{"value": "c", "count": 5}, {"value": "a", "count": 2}],
        "other": 2,
        "error": 0,
    }


def test_what_shards_left_out_is_told_as_the_error_of_counts() -> None:
    """A value may have had, where it was left out, as many as the last that was not."""
    one = Terms.read(["a", "b"], [9, 5], 5)
    two = Terms.read(["a", "c"], [8, 3], 3)
    assert one.plus(two).body("keyword", 1) == {
        "buckets": [{"value": "a", "count": 17}],
        "other": 8,
        "error": 8,
    }


@given(st.data())
def test_no_count_is_off_by_more_than_its_error(data: st.DataObject) -> None:
    """Whatever shards leave out, counts lack at most what is said, values not shown too."""
    shards = data.draw(
        st.lists(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 9)), max_size=5)
    )
    kept = data.draw(st.integers(1, 4))
    whole = Terms({})
    true: dict[str, int] = {}
    for shard in shards:
        ranked = sorted(shard.items(), key=lambda item: (-item[1], item[0]))
        floor = ranked[kept - 1][1] if len(ranked) > kept else 0
        values, numbers_ = [v for v, _ in ranked[:kept]], [n for _, n in ranked[:kept]]
        whole = whole.plus(Terms.read(values, numbers_, floor))
        for value, count in shard.items():
            true[value] = true.get(value, 0) + count
    body = whole.body("keyword", data.draw(st.integers(1, 8)))
    for bucket in body["buckets"]:
        assert bucket["count"] <= true[bucket["value"]] <= bucket["count"] + body["error"]
    if body["error"] == 0:
        best = sorted(true.items(), key=lambda item: (-item[1], item[0]))
        shown = [(bucket["value"], bucket["count"]) for bucket in body["buckets"]]
        assert shown == best[: len(shown)]


def test_integers_are_added_without_losing_a_digit() -> None:
    """And doubles so that the order does not matter."""
    whole = Stats(1, 2**63 - 1, 2**63 - 1, (2**63 - 1,)).plus(Stats(1, 1, 1, (1,)))
    body = whole.body("integer")
    assert (body["sum"], body["min"], body["max"], body["count"]) == (2**63, 1, 2**63 - 1, 2)
    assert Stats(3, -1.0, 1.0, (1e16, 1.0, -1e16)).body("float")["sum"] == 1.0
    empty = {"count": 0, "min": None, "max": None, "sum": 0, "avg": None}
    assert Stats().body("integer") == empty
    dates = Stats(2, 0, 2_000_000, (2_000_000,)).body("date")
    assert dates == {
        "count": 2,
        "min": "1970-01-01T00:00:00Z",
        "max": "1970-01-01T00:00:02Z",
        "sum": None,
        "avg": "1970-01-01T00:00:01Z",
    }
    assert Stats().body("date")["avg"] is None


def test_distinct_values_are_exact_up_to_a_size_and_near_beyond() -> None:
    """Between hashes and a sketch there is no seam; the error is what is said."""
    values = [hashed(i) for i in range(50_000)]
    exact = Distinct(frozenset(values[:3000])).plus(Distinct(frozenset(values[2000:4096])))
    assert exact.body() == {"count": 4096, "error": 0.0}
    parts = [Distinct(frozenset(values[i : i + 4000])) for i in range(0, 50_000, 3000)]
    whole = reduce(Distinct.plus, parts)
    body = whole.body()
    assert body["error"] == round(STANDARD_ERROR, 4)
    assert abs(body["count"] / 50_000 - 1) < 3 * STANDARD_ERROR
    assert whole.plus(whole).body() == body


ASKED: dict[str, FacetRequest] = {
    "kinds": TermsRequest("kind", 1),
    "ns": HistogramRequest("n", 5.0, 1.0),
    "hours": DateHistogramRequest("at", "hour"),
    "months": DateHistogramRequest("at", "month"),
    "stats": StatsRequest("x"),
    "different": DistinctRequest("kind"),
}
COUNTS: tuple[Count, ...] = (
    TermsCount("kind"),
    HistogramCount("n", 5.0, 1.0),
    HistogramCount("at", 3_600_000_000.0),
    CalendarCount("at", "month"),
    StatsCount("x"),
    DistinctCount("kind"),
)
SENT: list[Any] = [
    [["a"], [2], 0],
    [[-1, 0], [1, 2]],
    [[1], [2]],
    [[31], [2]],
    [2, 0.5, 1.5, 2.0],
    [[7], ""],
]


class Answer:
    """What a shard has counted."""

    def __init__(self, sent: Any) -> None:
        self.sent = sent

    def read_facets(self) -> list[Any]:
        """Give it."""
        if isinstance(self.sent, str):
            raise BrokenAnswer(self.sent)
        return list(self.sent)


def test_shards_answers_become_the_facets_of_an_answer() -> None:
    """By the names they were asked by, as JSON has their values."""
    whole = f.counted([(0, Answer(SENT)), (1, Answer(SENT))], COUNTS)
    assert f.facets_body(ASKED, COUNTS, whole, FIELDS) == {
        "kinds": {
            "type": "terms",
            "buckets": [{"value": "a", "count": 4}],
            "other": 0,
            "error": 0,
        },
        "ns": {
            "type": "histogram",
            "buckets": [{"from": -4.0, "count": 2}, {"from": 1.0, "count": 4}],
        },
        "hours": {
            "type": "date_histogram",
            "buckets": [{"from": "1970-01-01T01:00:00Z", "count": 4}],
        },
        "months": {
            "type": "date_histogram",
            "buckets": [{"from": "1970-02-01T00:00:00Z", "count": 4}],
        },
        "stats": {"type": "stats", "count": 4, "min": 0.5, "max": 1.5, "sum": 4.0, "avg": 1.0},
        "different": {"type": "distinct", "count": 1, "error": 0.0},
    }
    assert f.counted([(0, Answer("never read"))], ()) == []


@pytest.mark.parametrize(
    "sent",
    [
        "no JSON",
        SENT[:2],
        [7, *SENT[1:]],
        [[["a"], [1, 2], 0], *SENT[1:]],
        [SENT[0], [[1]], *SENT[2:]],
        [*SENT[:5], [[7], "????"]],
        [*SENT[:5], [[], "AAAA"]],
        [*SENT[:4], [1, 2], SENT[5]],
    ],
)
def test_an_answer_that_cannot_be_read_names_its_shard(sent: Any) -> None:
    """The shard counts as one that failed."""
    with pytest.raises(Unreadable, match="shard 3"):
        f.counted([(3, Answer(sent))], COUNTS)


def test_too_many_intervals_are_refused() -> None:
    """Shards may have few each and all together too many for an answer."""
    many = [Intervals(dict.fromkeys(range(BUCKETS_MAX + 1), 1))]
    with pytest.raises(BadRequest, match="makes 10001 intervals of 'n'") as caught:
        f.facets_body({"ns": ASKED["ns"]}, COUNTS[1:2], many, FIELDS)
    assert caught.value.field == "facets.ns.interval"


def test_facets_of_two_kinds_are_not_added() -> None:
    """That is a fault of ours."""
    with pytest.raises(TypeError, match="Stats is not added to Terms"):
        f.added([Stats()], [Terms({})])


def test_what_is_no_facet_is_a_fault_of_ours() -> None:
    """Whoever adds a kind of facet is told where it is missing."""
    alien: Any = HistogramRequest("n", 1.0)
    for act in (
        lambda: f.nothing_counted([alien]),
        lambda: f.read_facets([alien], [[]]),
        lambda: f.facets_body({"x": ASKED["ns"]}, COUNTS[1:2], [alien], FIELDS),
    ):
        with pytest.raises(AssertionError):
            act()
