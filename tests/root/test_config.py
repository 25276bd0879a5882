"""The root's settings: a value that exists is legal."""

from __future__ import annotations

import math
from typing import get_args

import pytest

from root.budget import BudgetTerms
from root.config import Settings
from root.hedging import Adaptive, Fixed, Off, Policy, Quantile, Sibling, Tied, Together
from root.requests import HedgeName


def test_the_defaults_are_legal_and_as_documented() -> None:
    """Two attempts a leg, five per cent extra load, everything must be searched."""
    settings = Settings()
    assert (settings.attempts_max, settings.min_coverage) == (2, 1.0)
    assert settings.budget == BudgetTerms(max_extra_load=0.05)
    assert settings.policy(settings.hedge) == Adaptive()


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("off", Off()),
        ("fixed", Fixed(0.025)),
        ("quantile", Quantile(0.9)),
        ("sibling", Sibling(0.75, 3.0)),
        ("adaptive", Adaptive()),
        ("together", Together()),
        ("tied", Tied()),
    ],
)
def test_a_policy_is_made_with_the_operators_parameters(name: str, policy: Policy) -> None:
    """A request may choose the policy by name, not its parameters."""
    settings = Settings(
        hedge="off",
        hedge_delay_ms=25.0,
        hedge_quantile=0.9,
        hedge_quorum=0.75,
        hedge_factor=3.0,
    )
    assert settings.policy(name) == policy


@pytest.mark.parametrize("hedge", get_args(HedgeName))
def test_every_policy_that_a_request_may_name_can_be_made(hedge: str) -> None:
    """Whatever the operator's default is, so that a request never meets a bad setting."""
    assert Settings(hedge=hedge).policy(hedge).name == hedge
    assert Settings().policy(hedge).name == hedge


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("timeout_ms", 0.5),
        ("timeout_ms", 60_001),
        ("timeout_ms", math.nan),
        ("min_coverage", -0.1),
        ("min_coverage", 1.1),
        ("hedge", "sometimes"),
        ("hedge", ""),
        ("hedge_delay_ms", -1.0),
        ("hedge_delay_ms", math.inf),
        ("hedge_quantile", 0.0),
        ("hedge_quantile", 1.0),
        ("hedge_quantile", math.nan),
        ("hedge_quorum", 0.0),
        ("hedge_quorum", 1.0),
        ("hedge_factor", 0.9),
        ("hedge_factor", math.inf),
        ("attempts_max", 0),
        ("attempts_max", 11),
        ("in_flight_max", 0),
        ("in_flight_max", 100_001),
    ],
)
@pytest.mark.parametrize("default", ["off", "quantile"])
def test_a_bad_setting_is_refused_by_name(setting: str, value: float | str, default: str) -> None:
    """Also where the default policy would not use it: a request may."""
    given = {"hedge": default, setting: value}
    with pytest.raises(ValueError, match=rf"^{setting} must "):
        Settings(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("timeout_ms", 1),
        ("timeout_ms", 60_000),
        ("min_coverage", 0),
        ("hedge_delay_ms", 0),
        ("attempts_max", 1),
        ("attempts_max", 10),
        ("in_flight_max", 1),
    ],
)
def test_limits_are_the_last_legal_values(setting: str, value: float) -> None:
    """Both ends of a range are in it."""
    assert getattr(Settings(**{setting: value}), setting) == value  # type: ignore[arg-type]
