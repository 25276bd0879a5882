"""The last minute: what it remembers, what it forgets, and that it costs the same for ever."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from root.gather import Outcome
from root.ledger import Ledger, Tally
from root.live import LEGS_PER_S, SECONDS, WINDOW_S, WINDOWS, Live
from root.pursuit import Phase
from root.race import Attempt
from root.ranking import Leaf

NEAR = 0.02
"""Half a bin."""


def live() -> Live:
    """One that has seen nothing."""
    return Live(Random("live"), 0.0, dict)


def fan_out(*took_s: float, missing: int = 0, decided_s: float | None = None) -> Phase:
    """A search that began at 100 s, of legs that took so long, in the order of sending."""
    began_s = 100.0
    leaf = Leaf("a", 0.0)
    attempts = [
        Attempt(i, i, i, leaf, "primary", began_s, fate="won", ended_s=began_s + took)
        for i, took in enumerate(took_s)
    ]
    attempts.append(Attempt(99, 0, 0, leaf, "hedge", began_s, fate="lost", ended_s=began_s + 9.0))
    end_s = began_s + max(took_s) if decided_s is None else decided_s
    lost = {len(took_s) + i: "timeout" for i in range(missing)}
    outcome = Outcome([(i, True) for i in range(len(took_s))], lost, {}, end_s)  # type: ignore[arg-type]
    return Phase("search", "search-short", outcome, attempts, began_s, Tally())


def hundred() -> Sequence[float]:
    """Legs of 1, 2, ... 100 ms, not in their order."""
    took_ms = list(range(1, 101))
    Random(1).shuffle(took_ms)
    return [took / 1000.0 for took in took_ms]


def test_a_fan_out_is_told_by_three_rows() -> None:
    """When one random leaf, 95 % and all of a query's leaves had answered, from its start."""
    minute = live()
    for number in range(1000):
        minute.fanned_out(fan_out(*hundred()), number)
    rows = minute.picture()["fan_outs"]
    assert rows["one_leaf"]["p50"] == pytest.approx(50.0, rel=0.15)
    assert rows["one_leaf"]["p99"] == pytest.approx(99.0, rel=0.1)
    assert rows["most_leaves"] == {p: pytest.approx(95.0, rel=NEAR) for p in ("p50", "p95", "p99")}
    assert rows["all_leaves"] == {p: pytest.approx(100.0, rel=NEAR) for p in ("p50", "p95", "p99")}


def test_a_shard_that_never_answers_took_as_long_as_the_query() -> None:
    """Whoever is given up counts with the time that was waited for it."""
    minute = live()
    minute.fanned_out(fan_out(0.010, missing=1, decided_s=102.0), 0)
    assert minute.picture()["fan_outs"]["all_leaves"]["p50"] == pytest.approx(2000.0, rel=NEAR)


def test_a_fan_out_to_nobody_is_none() -> None:
    """Where every shard is somewhere else, there is nothing to say."""
    minute = live()
    nobody = Outcome([], {}, {}, 100.0)
    minute.fanned_out(Phase("search", "search-short", nobody, [], 100.0, Tally()), 0)
    assert minute.picture()["fan_outs"]["one_leaf"] == {"p50": None, "p95": None, "p99": None}


def test_what_is_older_than_a_minute_is_forgotten() -> None:
    """After a minute it is still there, a window later it is not, however seldom one looks."""
    minute = live()
    minute.answered(0.010)
    minute.tick(Ledger(), 60.0)
    assert minute.picture()["requests"]["p50"] == pytest.approx(10.0, rel=NEAR)
    minute.tick(Ledger(), WINDOWS * WINDOW_S)
    assert minute.picture()["requests"]["p50"] is None
    minute.answered(0.010)
    minute.tick(Ledger(), 1e6)
    assert minute.picture()["distribution"] == {"edges_ms": [], "counts": []}


def test_the_distribution_has_a_bar_for_every_request() -> None:
    """Bars go from the first that has any to the last, each between two edges."""
    minute = live()
    for took_s in (0.004, 0.010, 0.010, 1.0, 1e-9, 1e9):
        minute.answered(took_s)
    bars = minute.picture()["distribution"]
    assert sum(bars["counts"]) == 6
    assert len(bars["edges_ms"]) == len(bars["counts"]) + 1
    assert bars["edges_ms"] == sorted(bars["edges_ms"])
    assert 2 in bars["counts"]
    assert bars["counts"][0] == bars["counts"][-1] == 1


def test_counters_are_told_by_their_growth() -> None:
    """In all and by second, over the last minute only."""
    minute, ledger = live(), Ledger()
    for second in range(1, 101):
        minute.answered(0.001)
        ledger.sent["primary"] += 20
        ledger.sent["hedge"] += second > 99
        ledger.sent["failover"] += second > 99
        ledger.hedge_wins += second > 99
        minute.tick(ledger, float(second))
    picture = minute.picture()
    assert picture["seconds"] == SECONDS
    assert picture["requests"]["count"] == SECONDS
    assert picture["attempts"] == {
        "first": 1200,
        "extra": 2,
        "hedges": 1,
        "hedge_wins": 1,
        "denied": 0,
    }
    assert picture["history"]["first"] == [20] * SECONDS
    assert picture["history"]["extra"] == [0] * (SECONDS - 1) + [2]
    assert picture["history"]["requests"] == [1] * SECONDS


def test_legs_are_told_by_leaf() -> None:
    """Over the last minute only; a leaf that nobody has asked since has none."""
    answered = {"a": 7, "b": 0}
    minute, ledger = Live(Random("live"), 0.0, answered.copy), Ledger()
    assert minute.legs() == {"a": 0, "b": 0}
    for second in range(1, 31):
        answered["a"] += 2
        minute.tick(ledger, float(second))
    assert minute.legs() == {"a": 60, "b": 0}
    for second in range(31, 91):
        answered["b"] += 1
        minute.tick(ledger, float(second))
    assert minute.legs() == {"a": 0, "b": SECONDS}


def test_a_root_in_a_hurry_looks_at_every_nth_fan_out_only() -> None:
    """By the request's number, whatever it took; when it is quiet again, at all of them."""
    minute, ledger = live(), Ledger()
    ledger.sent["primary"] = int(3 * LEGS_PER_S)
    minute.tick(ledger, 1.0)
    for number in range(30):
        minute.fanned_out(fan_out(0.001 if number % 3 else 0.1), number)
    assert minute.picture()["fan_outs"]["all_leaves"]["p50"] == pytest.approx(100.0, rel=NEAR)
    minute.tick(ledger, 1.0)
    minute.tick(ledger, 2.0)
    for number in range(30):
        minute.fanned_out(fan_out(0.001), number)
    assert minute.picture()["fan_outs"]["all_leaves"]["p50"] == pytest.approx(1.0, rel=NEAR)
