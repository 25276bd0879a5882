"""What a race's hedge has saved: how much later it would have been answered without."""

from __future__ import annotations

import pytest

from root.race import Attempt, Race, Terms
from tests.root.conftest import leaves, terms


def hedged(given: Terms) -> tuple[Race, Attempt, Attempt]:
    """A race of three replicas, its primary sent at time 0 and its hedge after 20 ms."""
    race = Race(0, 7, leaves(3))
    primary, hedge = race.start(0, given, 0.0), race.hedge(1, given, 0.020)
    assert primary is not None
    assert isinstance(hedge, Attempt)
    return race, primary, hedge


@pytest.mark.parametrize("end", ["an answer", "a cancel", "a loss"])
def test_a_hedge_saves_what_the_attempt_it_beat_takes_longer(end: str) -> None:
    """From the hedge's answer to the end of that attempt, however it ends."""
    given = terms()
    race, primary, hedge = hedged(given)
    race.replied(hedge, "answer", given, 0.030)
    assert given.ledger.saved_s == 0.0
    if end == "an answer":
        race.replied(primary, "late", given, 0.130)
    else:
        race.failed(primary, "cancelled" if end == "a cancel" else "gone", 2, given, 0.130)
    assert given.ledger.saved_s == pytest.approx(0.100)


def test_a_hedge_that_does_not_win_saves_nothing() -> None:
    """Neither where the attempt it was to help answers first, nor where nothing answers."""
    given = terms()
    race, primary, hedge = hedged(given)
    race.replied(primary, "answer", given, 0.030)
    race.replied(hedge, "late", given, 0.130)
    race, primary, _ = hedged(given)
    race.give_up("timeout", given, 0.030)
    race.replied(primary, "late", given, 0.130)
    assert given.ledger.saved_s == 0.0


def test_a_hedge_that_another_hedge_has_beaten_saves_nothing() -> None:
    """Without hedges there would be the first attempt alone, so its end alone counts."""
    given = terms(attempts_max=3)
    race, primary, winner = hedged(given)
    loser = race.hedge(2, given, 0.025)
    assert isinstance(loser, Attempt)
    race.replied(winner, "answer", given, 0.030)
    race.replied(loser, "late", given, 0.530)
    race.replied(primary, "late", given, 0.040)
    assert given.ledger.saved_s == pytest.approx(0.010)
