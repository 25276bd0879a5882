"""What a shard counts at the limits: many values, large numbers, too many intervals."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
import tantivy

from index_data.manifest import Field
from index_data.schema import open_for_writing, tantivy_schema
from index_data.segment import add_rows
from index_data.values import DAY_US
from leaf import facets
from leaf.errors import BadQuery
from leaf.facets import Counter, first_day
from leaf.filters import FilterMaker
from leaf.selection import (
    CalendarCount,
    Count,
    DistinctCount,
    HistogramCount,
    StatsCount,
    TermsCount,
)
from leaf.sketch import hashed, sketch

FIELDS = (
    Field("kind", "keyword"),
    Field("n", "integer"),
    Field("x", "float"),
    Field("at", "date"),
)
MOST = 2**63 - 1
DOCUMENTS = 300


@pytest.fixture(scope="module")
def counter() -> Counter:
    """Three hundred documents: as many kinds, numbers at both ends, fractions, days."""
    schema = tantivy_schema(FIELDS)
    index = open_for_writing(schema, FIELDS)
    rows = (
        b'{"kind":"k%d","n":%d,"x":%d.5,"at":"1970-01-01T00:%02d:00Z"}'
        % (i, MOST - i if i % 2 else i - MOST, i, i % 60)
        for i in range(DOCUMENTS)
    )
    add_rows(index, FIELDS, ((i, f"d{i}", row) for i, row in enumerate(rows)))
    return Counter(index.searcher(), FilterMaker(FIELDS, schema))


def counted(counter: Counter, *counts: Count) -> list[Any]:
    """What is counted over all."""
    return counter.count(tantivy.Query.all_query(), counts)


def test_values_that_are_left_out_are_told(
    counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last count that is sent is the most that another can have."""
    ((values, counts, floor),) = counted(counter, TermsCount("kind"))
    assert (len(values), sum(counts), floor) == (DOCUMENTS, DOCUMENTS, 0)
    monkeypatch.setattr(facets, "BUCKETS_MAX", 10)
    ((values, counts, floor),) = counted(counter, TermsCount("kind"))
    assert (len(values), counts, floor) == (10, [1] * 10, 1)


def test_extremes_of_large_integers_keep_their_digits(counter: Counter) -> None:
    """Although the sum of so large ones is a double."""
    ((count, least, most, total),) = counted(counter, StatsCount("n"))
    assert (count, least, most) == (DOCUMENTS, -MOST, MOST - 1)
    assert isinstance(total, float)
    ((count, least, most, total),) = counted(counter, StatsCount("at"))
    assert (count, least, most) == (DOCUMENTS, 0, 59 * 60_000_000)
    assert total == 5 * sum(range(60)) * 60_000_000
    assert isinstance(total, int)


@pytest.mark.parametrize("field", ["kind", "n", "x"])
def test_many_different_values_become_a_sketch_of_all(
    counter: Counter, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    """However many, and however few at once."""
    ((hashes, nothing),) = counted(counter, DistinctCount(field))
    assert (len(set(hashes)), nothing) == (DOCUMENTS, "")
    monkeypatch.setattr(facets, "DISTINCT_EXACT_MAX", 10)
    monkeypatch.setattr(facets, "_AT_ONCE", 7)
    ((nothing, registers),) = counted(counter, DistinctCount(field))
    assert nothing == []
    assert b64decode(registers) == sketch(hashes)


def test_values_are_hashed_by_their_type(counter: Counter) -> None:
    """A whole number in a field of doubles is a double."""
    ((hashes, _),) = counted(counter, DistinctCount("x"))
    assert hashed(7.5) in hashes


def test_too_many_intervals_are_refused(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    """As are intervals so small that their numbers have no meaning."""
    with pytest.raises(BadQuery, match="too far from its offset"):
        counted(counter, HistogramCount("x", 1e-300))
    monkeypatch.setattr(facets, "BUCKETS_MAX", 50)
    with pytest.raises(BadQuery, match="more than 50 intervals"):
        counted(counter, HistogramCount("x", 1.0))


def test_the_library_s_own_limit_is_a_refusal_too(
    counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anything else that it complains of is not the caller's fault."""

    class Complaining:
        def __init__(self, words: str) -> None:
            self.words = words

        def aggregate(self, *arguments: Any) -> Any:
            raise ValueError(self.words)

    monkeypatch.setattr(counter, "_searcher", Complaining("bucket limit was exceeded"))
    with pytest.raises(BadQuery, match="intervals"):
        counted(counter, HistogramCount("x", 1.0))
    monkeypatch.setattr(counter, "_searcher", Complaining("out of luck"))
    with pytest.raises(ValueError, match="out of luck"):
        counted(counter, HistogramCount("x", 1.0))


def test_unknown_fields_and_text_are_refused(counter: Counter) -> None:
    """A root that knows the schema never asks."""
    with pytest.raises(BadQuery, match="'nowhere'"):
        counted(counter, TermsCount("nowhere"))


def test_calendars_begin_where_people_expect() -> None:
    """Weeks on Mondays; before 1970 too."""
    assert first_day(0, "week") == -3
    assert first_day(-3, "week") == -3
    assert first_day(40, "month") == 31
    assert first_day(-1, "month") == -31
    assert first_day(100, "quarter") == 90
    assert first_day(100, "year") == 0
    assert first_day(-1, "year") == -365
    assert DAY_US == 86_400_000_000


def test_days_add_up_to_months(counter: Counter) -> None:
    """All of the documents are of January 1970."""
    assert counted(counter, CalendarCount("at", "month")) == [[[0], [DOCUMENTS]]]
