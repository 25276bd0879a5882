"""Sorted shards become one sorted page."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaf.selection import SortedRow, SortKey, SortValue, arranged
from root.merge import Unreadable
from root.ordering import sorted_rows


@dataclass
class Answer:
    """What a shard has sorted."""

    total: int
    values: list[list[SortValue]] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)
    broken: str = ""

    def read_sorted(self) -> tuple[list[list[SortValue]], list[int]]:
        """Give it."""
        if self.broken:
            raise ValueError(self.broken)
        return self.values, self.ordinals


values = st.sampled_from([None, 1, 2, 2**63 - 1])
words = st.sampled_from([None, "", "a", "b"])
documents = st.dictionaries(
    st.integers(0, 99), st.tuples(st.integers(0, 3), st.tuples(values, words)), max_size=30
)


@given(documents, st.booleans(), st.booleans(), st.integers(0, 9), st.integers(1, 9))
def test_a_page_is_that_of_all_documents_sorted(
    corpus: dict[int, tuple[int, tuple[SortValue, SortValue]]],
    down: bool,
    then_down: bool,
    offset: int,
    k: int,
) -> None:
    """By each key in its direction, missing values last, then by ordinal."""
    keys = (SortKey("n", down), SortKey("kind", then_down))
    replies = []
    for shard in range(4):
        rows = [SortedRow(v, o, shard) for o, (held, v) in corpus.items() if held == shard]
        best = arranged(rows, keys)[: offset + k]
        answer = Answer(len(rows), [list(r.values) for r in best], [r.ordinal for r in best])
        replies.append((shard, answer))

    def place(ordinal: int) -> tuple[object, ...]:
        number, word = corpus[ordinal][1]
        at = 0 if number is None else int(number)
        letters = [ord(letter) for letter in str(word or "")]
        return (
            number is None,
            -at if down else at,
            word is None,
            [-1000 + len(letters) * -1000 + sum(-n for n in letters)] if then_down else letters,
            ordinal,
        )

    wanted = sorted(corpus, key=place)[offset : offset + k]
    page = sorted_rows(replies, keys)[offset : offset + k]
    assert [row.ordinal for row in page] == wanted
    assert all(corpus[row.ordinal][0] == row.shard for row in page)


def test_a_shard_that_cannot_be_read_is_named() -> None:
    """So is one whose rows have other keys than were asked for."""
    good = Answer(1, [[1]], [7])
    assert sorted_rows([(0, good)], (SortKey("n"),)) == [SortedRow([1], 7, 0)]
    for bad in (Answer(1, broken="no JSON"), Answer(1, [[1, 2]], [7])):
        with pytest.raises(Unreadable, match="shard 5"):
            sorted_rows([(0, good), (5, bad)], (SortKey("n"),))
