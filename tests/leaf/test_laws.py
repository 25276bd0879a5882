"""Distributions: what is drawn has the law that its name says."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from statistics import NormalDist

import msgspec
import pytest

from leaf.laws import Constant, Law, LogNormal, Pareto, Uniform

DRAWS = 20_000
KOLMOGOROV = 1.95
"""The largest distance between a sample's distribution and its law, times the root of the
sample's size, is above this in one sample of a thousand."""


def sample(law: Law, draws: int = DRAWS) -> list[float]:
    """Sorted draws in milliseconds."""
    random = Random("laws")
    return sorted(law.draw_s(random) * 1e3 for _ in range(draws))


@pytest.mark.parametrize(
    ("law", "below"),
    [
        (Uniform(2.0, 10.0), lambda x: (x - 2.0) / 8.0),
        (Uniform(0.0, 10.0, largest_of=3), lambda x: (x / 10.0) ** 3),
        (LogNormal(7.9, 0.62), lambda x: NormalDist().cdf(math.log(x / 7.9) / 0.62)),
        (LogNormal(1.0, 0.98), lambda x: NormalDist().cdf(math.log(x) / 0.98)),
        (Pareto(24.0, 3.1), lambda x: 1.0 - (24.0 / x) ** 3.1),
        (Pareto(400.0, 1.5), lambda x: 1.0 - (400.0 / x) ** 1.5),
    ],
)
def test_draws_have_the_distribution_of_their_law(
    law: Law, below: Callable[[float], float]
) -> None:
    """The share of draws up to any value is the closed form of the law."""
    drawn = sample(law)
    distance = max(abs(below(x) - (rank + 0.5) / DRAWS) for rank, x in enumerate(drawn))
    assert distance * math.sqrt(DRAWS) < KOLMOGOROV


def test_what_is_constant_is_not_left_to_chance() -> None:
    """Every draw is the same, and takes nothing from the generator."""
    random = Random(1)
    before = random.getstate()
    assert {Constant(300.0).draw_s(random) for _ in range(10)} == {0.3}
    assert random.getstate() == before


def test_steps_are_drawn_alike_and_the_largest_counts() -> None:
    """The larger of two of {0, 1, 2, 3, 4} is at most k with probability ((k + 1) / 5) ** 2."""
    law = Uniform(0.0, 4000.0, step_ms=1000.0, largest_of=2)
    drawn = sample(law)
    assert set(drawn) == {0.0, 1000.0, 2000.0, 3000.0, 4000.0}
    for k in range(5):
        wanted = ((k + 1) / 5) ** 2
        share = sum(x <= k * 1000.0 for x in drawn) / DRAWS
        assert abs(share - wanted) < 4.0 * math.sqrt(0.25 / DRAWS)
    assert sum(drawn) / DRAWS == pytest.approx(2800.0, rel=0.02)


@pytest.mark.parametrize(
    "described",
    [
        {"law": "constant", "ms": -1},
        {"law": "constant", "ms": math.nan},
        {"law": "constant", "ms": 1e9},
        {"law": "uniform", "from_ms": 2, "to_ms": 1},
        {"law": "uniform", "from_ms": 0, "to_ms": 1, "largest_of": 0},
        {"law": "log-normal", "median_ms": 0, "sigma": 1},
        {"law": "log-normal", "median_ms": 1, "sigma": math.inf},
        {"law": "pareto", "least_ms": 1, "alpha": 0},
        {"law": "pareto", "least_ms": 1, "alpha": 1, "beta": 1},
        {"law": "zipf"},
    ],
)
def test_a_law_that_cannot_be_drawn_from_is_none(described: dict[str, object]) -> None:
    """A law that exists can be drawn from."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(described, Law)
