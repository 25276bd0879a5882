"""From the shards' answers to one page: never a repeat, never a gap."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from root.merge import (
    FINALISTS_MAX,
    PATTERN_FINALISTS_MAX,
    ROUNDING,
    Candidate,
    Finalists,
    Unreadable,
    chosen,
    finalists,
)


@dataclass
class Answer:
    """What a shard answers, as far as merging reads it."""

    total: int = 0
    scores: list[float] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)

    @property
    def best(self) -> float:
        """The first score."""
        return self.scores[0] if self.scores else 0.0

    def read(self) -> tuple[list[float], list[int]]:
        """What it has found."""
        return self.scores, self.ordinals


Documents = dict[int, tuple[int, float]]
"""By ordinal: the shard and the score."""

Replies = list[tuple[int, Answer]]


def replies(documents: Documents, shards: int, depth: int | None = None) -> Replies:
    """What each shard answers: its best ``depth``, ties lowest ordinal first."""
    answers: Replies = []
    for shard in range(shards):
        own = sorted((-score, o) for o, (held, score) in documents.items() if held == shard)
        best = own[:depth]
        answers.append((shard, Answer(len(own), [-s for s, _ in best], [o for _, o in best])))
    return answers


def brute_force(documents: Documents) -> list[int]:
    """All ordinals in the order of results."""
    return sorted(documents, key=lambda ordinal: (-documents[ordinal][1], ordinal))


def page(found: Finalists, exact: Documents, k: int) -> list[int]:
    """The page after phase two: the finalists by their exact scores."""
    return brute_force({c.ordinal: exact[c.ordinal] for c in found.candidates})[found.skip :][:k]


SHARDS = 5
shards = st.integers(0, SHARDS - 1)
few_scores = st.sampled_from([0.0, 0.5, 1.0, 1.0000001, 2.0, 7.25])
corpora = st.dictionaries(
    st.integers(0, 2**53), st.tuples(shards, few_scores | st.floats(0.0, 50.0)), max_size=40
)
offsets = st.integers(0, 45)
ks = st.integers(1, 20)


@given(documents=corpora, offset=offsets, k=ks, seed=st.integers(0, 9))
def test_exact_scores_give_the_page_of_one_big_index(
    documents: Documents, offset: int, k: int, seed: int
) -> None:
    """Whatever the split into shards and the order of answers, each answering offset + k."""
    answers = replies(documents, SHARDS, offset + k)
    Random(seed).shuffle(answers)
    found = finalists(answers, offset, k, 0.0)
    assert [c.ordinal for c in found.candidates] == brute_force(documents)[offset : offset + k]
    assert found.skip == 0
    assert found.total == len(documents)


def perturbed(documents: Documents, error: float, random: Random) -> Documents:
    """The same documents with every score off by up to ``error``, often by just that."""
    factors = (1.0 - error, 1.0, 1.0 + error)
    return {
        o: (shard, score * (random.choice(factors) if random.random() < 0.7 else 1.0))
        for o, (shard, score) in documents.items()
    }


@given(
    exact=corpora,
    offset=offsets,
    k=ks,
    error=st.sampled_from([1e-6, 0.001, 0.05, 0.3, 0.6]),
    seed=st.integers(0, 999),
)
def test_scores_that_are_off_give_the_true_page_all_the_same(
    exact: Documents, offset: int, k: int, error: float, seed: int
) -> None:
    """Scores within half the slack: the finalists hold the page, and skip finds its start."""
    rough = perturbed(exact, error, Random(seed))
    found = finalists(replies(rough, SHARDS), offset, k, 2 * error + ROUNDING)
    assert page(found, exact, k) == brute_force(exact)[offset : offset + k]
    assert found.total == len(exact)


def test_the_first_of_a_page_is_kept_when_errors_are_as_large_as_they_may_be() -> None:
    """1.21 that is 1.089 and 1 that is 1.1 change places: neither is skipped for certain."""
    exact: Documents = {1: (0, 1.089), 2: (1, 1.1)}
    rough: Documents = {1: (0, 1.21), 2: (1, 1.0)}
    pages = [page(finalists(replies(rough, 2), o, 1, 0.2), exact, 1) for o in (0, 1)]
    assert pages == [[2], [1]]


@pytest.mark.parametrize("slack", [0.0, ROUNDING, 0.1])
def test_equal_scores_page_through_without_repeat_or_gap(slack: float) -> None:
    """Twenty pages of documents that all score the same are all of them, in order of id."""
    random = Random("equal")
    documents: Documents = {o: (random.randrange(SHARDS), 1.0) for o in range(100)}
    seen: list[int] = []
    for offset in range(0, 100, 5):
        answers = replies(documents, SHARDS, offset + 5 + 4)
        random.shuffle(answers)
        seen += page(finalists(answers, offset, 5, slack), documents, 5)
    assert seen == list(range(100))


@given(documents=corpora, offset=offsets, k=ks)
def test_exact_scores_need_no_more_finalists_than_the_page(
    documents: Documents, offset: int, k: int
) -> None:
    """Every further finalist would be a document fetched for nothing."""
    assert len(finalists(replies(documents, SHARDS), offset, k, 0.0).candidates) <= k


def test_only_what_may_be_on_the_page_is_a_finalist() -> None:
    """Far better ones are certain, far worse ones are out; only near ones are fetched."""
    scores = [100.0, 90.0, 50.0, 49.9, 49.8, 20.0]
    documents: Documents = {o: (o % SHARDS, score) for o, score in enumerate(scores)}
    found = finalists(replies(documents, SHARDS), 3, 1, 0.01)
    assert [c.ordinal for c in found.candidates] == [2, 3, 4]
    assert found.skip == 1


def test_past_the_end_there_is_nothing() -> None:
    """An offset beyond the last result gives no finalists, and still the total."""
    documents: Documents = {1: (0, 1.0), 2: (1, 2.0)}
    assert finalists(replies(documents, SHARDS), 2, 10, 0.1) == Finalists([], 0, 2)
    assert finalists([], 0, 10, 0.0) == Finalists([], 0, 0)


def test_totals_count_what_was_not_sent() -> None:
    """A shard's total is of all its matches, not of the best that it returned."""
    answers = [(0, Answer(1000, [2.0], [5])), (1, Answer(7, [1.0], [3]))]
    assert finalists(answers, 0, 1, 0.0).total == 1007


def test_ordinals_are_grouped_by_shard_for_fetching() -> None:
    """Each shard with its own, best first."""
    candidates = [Candidate(-3.0, 7, 1), Candidate(-2.0, 9, 0), Candidate(-1.0, 4, 1)]
    assert Finalists(candidates, 0, 3).by_shard() == {1: [7, 4], 0: [9]}


def test_candidates_sort_in_the_order_of_results() -> None:
    """Score descending, then ordinal ascending, whatever the shard."""
    candidates = [Candidate(-1.0, 9, 0), Candidate(-1.0, 2, 3), Candidate(-2.0, 5, 1)]
    assert [c.ordinal for c in sorted(candidates)] == [5, 2, 9]


class Garbled(Answer):
    """An answer that says it has hits, and has none that can be read."""

    claimed: float = 99.0

    @property
    def best(self) -> float:
        """What it says it has."""
        return self.claimed

    def read(self) -> tuple[list[float], list[int]]:
        """Fail as the wire's own type does."""
        raise ValueError("hits that cannot be read")


@pytest.mark.parametrize("k", [1, 20])
def test_a_shard_whose_hits_cannot_be_read_is_named(k: int) -> None:
    """Nothing is merged silently without it, whether or not all shards are looked into."""
    answers: Replies = [(3, Answer(1, [1.0], [7])), (5, Garbled(total=1))]
    with pytest.raises(Unreadable, match="shard 5 answered with hits") as caught:
        finalists(answers, 0, k, 0.0)
    assert caught.value.shard == 5


def test_shards_below_the_page_are_not_read() -> None:
    """With enough better shards, nobody looks at what a worse one has found."""
    low = Garbled(total=1)
    low.claimed = 0.5
    answers: Replies = [(0, Answer(1, [2.0], [1])), (1, Answer(1, [1.0], [2])), (2, low)]
    found = finalists(answers, 0, 2, 0.0)
    assert [c.ordinal for c in found.candidates] == [1, 2]
    assert found.total == 3


def test_near_ties_beyond_the_limit_keep_their_phase_one_order() -> None:
    """A thousand titles that are all alike do not make a thousand finalists more."""
    documents: Documents = {o: (o % SHARDS, 1.0) for o in range(5 * FINALISTS_MAX)}
    found = finalists(replies(documents, SHARDS), 2 * FINALISTS_MAX, 10, ROUNDING)
    assert found.settled
    assert len(found.candidates) == 10
    assert page(found, documents, 10) == brute_force(documents)[2 * FINALISTS_MAX :][:10]


def test_pages_of_many_near_ties_neither_repeat_nor_skip() -> None:
    """Equal scores that rounding has parted are equal again, whatever page is asked for."""
    random = Random(3)
    size, shards, k = 2 * FINALISTS_MAX, 4, 50
    noise = [1.0 + random.uniform(-1e-7, 1e-7) for _ in range(shards)]
    documents: Documents = {o: (o % shards, noise[o % shards]) for o in range(size)}
    pages = []
    for offset in range(0, size, k):
        found = finalists(replies(documents, shards, offset + k + 4), offset, k, ROUNDING)
        assert len(found.candidates) <= k + FINALISTS_MAX
        in_order = (
            found.candidates
            if found.settled
            else sorted(found.candidates, key=lambda candidate: candidate.ordinal)
        )
        pages += [c.ordinal for c in in_order[found.skip :][:k]]
    assert pages == list(range(size))


def test_of_a_list_that_goes_on_the_first_are_chosen_with_all_that_is_near() -> None:
    """Too many that are near are taken in the order in which they come."""
    near = [Candidate(-1.0 + i * 1e-6, i, 0) for i in range(FINALISTS_MAX + 3)]
    assert chosen([], 2, 0.1, 0) == Finalists([], 0, 0, settled=True)
    assert chosen(near, 2, 0.0, 9) == Finalists(near[:2], 0, 9, settled=True)
    assert chosen(near[:5], 2, 0.1, 9) == Finalists(near[:5], 0, 9)
    assert chosen(near, 2, 0.1, 9) == Finalists(near[:2], 0, 9, settled=True)


def test_a_query_that_is_dear_to_score_settles_sooner() -> None:
    """The bound is the caller's."""
    documents: Documents = {o: (o % SHARDS, 1.0) for o in range(200)}
    found = finalists(replies(documents, SHARDS), 20, 10, ROUNDING, PATTERN_FINALISTS_MAX)
    assert found.settled
    assert page(found, documents, 10) == brute_force(documents)[20:30]
    assert not finalists(replies(documents, SHARDS), 20, 10, ROUNDING).settled
