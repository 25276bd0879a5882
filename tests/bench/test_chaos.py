"""What chaos does to a fleet, and how it judges the answers."""

from __future__ import annotations

import pytest

from bench.client import Answer, Hit
from bench.experiments.chaos import Account, Judge, Plan, read_account

RIGHT = Answer("complete", (Hit("a", 2.0),), 7)


@pytest.mark.parametrize(
    "times",
    [{"kill_at_s": 20, "stop_at_s": 10}, {"stop_at_s": 30}, {"kill_at_s": 0}, {"duration_s": 15}],
)
def test_trouble_comes_in_order_inside_the_run(times: dict[str, float]) -> None:
    """First one leaf is killed, then another is stopped, then there is time left."""
    with pytest.raises(ValueError, match="order"):
        Plan(**times)  # type: ignore[arg-type]


def test_two_leaves_are_in_trouble() -> None:
    """The killed leaf cannot be stopped."""
    with pytest.raises(ValueError, match="two leaves"):
        Plan(killed=1, stopped=1)


def test_another_answer_than_before_is_wrong() -> None:
    """Hits and total must be the ones the query had at rest."""
    judge = Judge({"q": RIGHT})
    assert judge.judge("q", RIGHT) == "complete"
    assert judge.wrong == 0
    judge.judge("q", Answer("complete", RIGHT.hits, 6))
    judge.judge("q", Answer("complete", (), 7))
    assert judge.wrong == 2
    assert len(judge.said) == 2


def test_a_failed_answer_is_not_wrong_but_said() -> None:
    """A failure is counted by its fate."""
    judge = Judge({"q": RIGHT})
    assert judge.judge("q", Answer("timeout", detail="late")) == "timeout"
    assert judge.wrong == 0
    assert "late" in judge.said[0]


@pytest.mark.parametrize(
    ("fates", "balanced"),
    [({"won": 8, "lost": 2}, True), ({"won": 9}, False), ({"won": 9, "in_flight": 1}, False)],
)
def test_an_account_balances_when_every_attempt_has_ended(
    fates: dict[str, int], balanced: bool
) -> None:
    """Sent = won + lost + cancelled + failed."""
    assert Account(10, fates).balanced is balanced


def test_the_account_is_read_from_the_metrics() -> None:
    """All kinds of attempts count as sent."""
    text = """# TYPE hedgerow_attempts_sent counter
hedgerow_attempts_sent_total{kind="primary"} 9.0
hedgerow_attempts_sent_total{kind="hedge"} 1.0
# TYPE hedgerow_attempts_ended counter
hedgerow_attempts_ended_total{fate="won"} 9.0
hedgerow_attempts_ended_total{fate="cancelled"} 1.0
"""
    assert read_account(text) == Account(10, {"cancelled": 1, "won": 9})
