"""Fitting the profiles of trouble to the figures they are to reproduce.

The model is that of ``bench.simulation.profiles``, written for arrays. Base, component and
stalls of all legs of all queries are drawn once, as numbers that have no parameter in them,
and every set of parameters is tried on the same ones: what differs between two trials is the
parameters' doing. Components are stratified, one from each of as many equal parts of their law
as there are queries, so that hardly any chance is left in the slowest query of a hundred.

Six parameters have to give six figures: those are solved for, by damped Gauss-Newton steps in
the logarithms (K. Levenberg, 1944; D. W. Marquardt, 1963). Two more would do the same work as
these and are chosen instead: how many queries are bad, and how a leg's share of the component
is distributed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from bench.published import Row
from bench.simulation.profiles import Profile

LEGS: Final = 100
MOST: Final = 95
"""Legs of a query, and how many of them the second row of the table waits for."""

PERCENTILES: Final = {"p50": 50.0, "p95": 95.0, "p99": 99.0}

NEUTRAL: Final = Profile(
    base_median_ms=1.0,
    base_sigma=1.0,
    component_median_ms=10.0,
    component_sigma=0.5,
    bad_query_share=0.05,
    bad_query_factor=5.0,
    component_share_power=0.625,
    stall_share=0.01,
    stall_min_ms=30.0,
    stall_alpha=3.0,
)
"""Where the fit begins: round numbers. What is not solved for stays as it is here. One query in
twenty is bad: fewer would not show in the 95th percentile, more would make it."""

SOLVED: Final = (
    "component_median_ms",
    "component_sigma",
    "bad_query_factor",
    "stall_share",
    "stall_min_ms",
    "stall_alpha",
)

STEP: Final = 0.05
"""By how much a parameter is moved to see what follows: less, and it would be seen which single
legs begin to stall."""

ROUNDS_MAX: Final = 40
CLOSE_ENOUGH: Final = 0.002
"""The worst cell is off by no more: a fifth of what another seed moves."""

DAMPING_FIRST: Final = 0.01
DAMPING_FACTOR: Final = 4.0
DAMPING_MAX: Final = 1e6
LEAP_MAX: Final = 0.4
"""No parameter is moved by more than half of itself at once: the slopes hold for less."""

HALVINGS: Final = 40

Array = Any
"""numpy's own types say nothing of shapes: float64, a row a query."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What chance has to say, without a parameter in it: a row a query, a column a leg."""

    component: Array
    """Standard normal, one a query, stratified."""
    bad: Array
    """Uniform, one a query, stratified apart."""
    base: Array
    """Standard normal."""
    part: Array
    """Uniform: its power is the share of the component."""
    stalls: Array
    """Uniform: below the share of stalls, the leg has one."""
    stall: Array
    """Uniform: how long."""

    @classmethod
    def drawn(cls, queries: int, seed: int, legs: int = LEGS) -> Numbers:
        """Draw for so many queries."""
        random = np.random.default_rng(seed)
        middles = (np.arange(queries) + 0.5) / queries
        normal = np.array([NormalDist().inv_cdf(q) for q in middles])
        shape = (queries, legs)
        return cls(
            component=random.permutation(normal),
            bad=random.permutation(middles),
            base=random.standard_normal(shape),
            part=random.random(shape),
            stalls=random.random(shape),
            stall=1.0 - random.random(shape),
        )


def legs_ms(profile: Profile, numbers: Numbers) -> Array:
    """How long each leg takes, in milliseconds."""
    component = profile.component_median_ms * np.exp(profile.component_sigma * numbers.component)
    component *= np.where(numbers.bad < profile.bad_query_share, profile.bad_query_factor, 1.0)
    legs = profile.base_median_ms * np.exp(profile.base_sigma * numbers.base)
    legs += component[:, None] * numbers.part**profile.component_share_power
    struck = numbers.stalls < profile.stall_share
    legs[struck] += profile.stall_min_ms * numbers.stall[struck] ** (-1.0 / profile.stall_alpha)
    return legs


def percentile(values: Array, at: float) -> float:
    """The smallest value that so many per cent do not exceed."""
    rank = max(0, math.ceil(len(values) * at / 100.0 - 1e-9) - 1)
    return float(np.partition(values, rank)[rank])


def rows_of(profile: Profile, numbers: Numbers) -> dict[str, Row]:
    """The table of a profile: percentiles in milliseconds, by row."""
    legs = legs_ms(profile, numbers)
    legs.partition((MOST - 1, LEGS - 1), axis=1)
    rows = {"95_percent": legs[:, MOST - 1], "100_percent": legs[:, LEGS - 1]}
    one = NormalDist()
    base = {
        name: profile.base_median_ms * math.exp(profile.base_sigma * one.inv_cdf(at / 100.0))
        for name, at in PERCENTILES.items()
    }
    in_a_fan_out = {
        row: {name: percentile(values, at) for name, at in PERCENTILES.items()}
        for row, values in rows.items()
    }
    return {"one_leaf": base, **in_a_fan_out}


def fit_base(profile: Profile, row: Row) -> Profile:
    """The log-normal base closest to a row: a line through three points, by least squares."""
    points = [
        (NormalDist().inv_cdf(at / 100.0), math.log(row[name])) for name, at in PERCENTILES.items()
    ]
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    sigma = sum((x - middle_x) * (y - middle_y) for x, y in points)
    sigma /= sum((x - middle_x) ** 2 for x, _ in points)
    return replace(profile, base_median_ms=math.exp(middle_y - sigma * middle_x), base_sigma=sigma)


def residuals(rows: Mapping[str, Row], wanted: Mapping[str, Row]) -> dict[str, Row]:
    """By how large a share each cell is above what is wanted."""
    return {
        row: {name: rows[row][name] / figure - 1.0 for name, figure in figures.items()}
        for row, figures in wanted.items()
    }


def fit_table(
    wanted: Mapping[str, Row],
    numbers: Numbers,
    beginning: Profile = NEUTRAL,
    told: Callable[[float], None] = lambda _: None,
) -> Profile:
    """Return the profile whose table is as wanted; ``told`` hears how far off the worst cell is.

    The base follows from the row of one leaf. The rest is solved for together.
    """
    based = fit_base(beginning, wanted["one_leaf"])
    in_a_fan_out = {row: wanted[row] for row in ("95_percent", "100_percent")}

    def off(profile: Profile) -> Array:
        rows = rows_of(profile, numbers)
        return np.array(
            [
                math.log(rows[row][name] / figure)
                for row, figures in in_a_fan_out.items()
                for name, figure in figures.items()
            ]
        )

    return _solved(based, off, told)


def _solved(
    profile: Profile, off: Callable[[Profile], Array], told: Callable[[float], None]
) -> Profile:
    """Move the parameters until nothing is off by much, or nothing helps any more."""
    damping = DAMPING_FIRST
    error = off(profile)
    for _ in range(ROUNDS_MAX):
        told(float(np.abs(error).max()))
        if np.abs(error).max() <= CLOSE_ENOUGH:
            break
        slopes = np.column_stack([(off(_moved(profile, {n: STEP})) - error) / STEP for n in SOLVED])
        better = None
        while better is None and damping <= DAMPING_MAX:
            steep = slopes.T @ slopes + damping * np.eye(len(SOLVED))
            step = np.clip(np.linalg.solve(steep, -slopes.T @ error), -LEAP_MAX, LEAP_MAX)
            tried = _moved(profile, dict(zip(SOLVED, step.tolist(), strict=True)))
            tried_error = off(tried)
            if tried_error @ tried_error < error @ error:
                better = tried, tried_error
            damping *= 1.0 / DAMPING_FACTOR if better else DAMPING_FACTOR
        if better is None:
            break
        profile, error = better
    return profile


def _moved(profile: Profile, by: Mapping[str, float]) -> Profile:
    """The profile with the logarithms of some parameters moved."""
    return replace(
        profile, **{name: getattr(profile, name) * math.exp(step) for name, step in by.items()}
    )


def fit_rare_stalls(
    beginning: Profile, numbers: Numbers, *, p999_ms: float, late_ms: float, late_share: float
) -> Profile:
    """Return the profile of rare, very long stalls with the given 99.9th percentile of queries,
    of whose legs so large a share takes longer than ``late_ms``.

    The share of stalls and their exponent stay. The 99.9th percentile is decided by them alone,
    so that the shortest stall follows in one line; the base's median is found by halving.
    """
    low, high = 0.0, late_ms
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        tried = replace(beginning, base_median_ms=middle)
        late = float((legs_ms(tried, numbers) > late_ms).mean())
        low, high = (low, middle) if late > late_share else (middle, high)
    fitted = replace(beginning, base_median_ms=(low + high) / 2.0)
    usual_ms = float(np.median(legs_ms(fitted, numbers)))
    stalled = (1.0 - (1.0 - 0.001) ** (1.0 / LEGS)) / fitted.stall_share
    stall_min_ms = (p999_ms - usual_ms) * stalled ** (1.0 / fitted.stall_alpha)
    return replace(fitted, stall_min_ms=stall_min_ms)
