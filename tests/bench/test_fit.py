"""``python -m bench fit``, and the profiles that are shipped beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from bench.experiments import fit
from bench.fitting import NEUTRAL, Numbers, fit_base, fit_table, residuals, rows_of
from bench.published import LEAVES_IN_A_FAN_OUT
from bench.simulation.profiles import PROFILES, TAIL_AT_SCALE, Draws, of_plan
from leaf import plans

QUERIES = 4000
WANTED = LEAVES_IN_A_FAN_OUT.rows

PARAMETER_TOLERANCE = 0.25
"""Of one parameter with a tenth of the queries: what one takes another gives, and the slowest
query in a hundred is one of twenty."""

CELL_TOLERANCE = 0.05
"""Of a cell with as few."""


@pytest.fixture(name="fitted", scope="module")
def fitted_fixture() -> fit.Result:
    """A small fit."""
    return fit.run(QUERIES, seed=1)


def test_what_is_shipped_is_what_the_fit_gives(fitted: fit.Result) -> None:
    """Each parameter of both profiles, and each cell of the table."""
    for parameters in (fitted.parameters, fitted.bigtable):
        for name, one in parameters.items():
            assert one.shipped == pytest.approx(one.fitted, rel=PARAMETER_TOLERANCE), name
    assert fitted.worst < CELL_TOLERANCE
    assert len([cell for row in fitted.rows.values() for cell in row]) == 9


def test_nothing_is_left_over(fitted: fit.Result) -> None:
    """Six parameters reach six figures, and a line comes close to the three of one leaf."""
    assert all(abs(cell.fitted_off) < 0.02 for row in fitted.rows.values() for cell in row.values())


def test_a_profile_that_is_off_has_residuals() -> None:
    """Twice the base is seen in the first row, and in the others too."""
    numbers = Numbers.drawn(200, seed=1)
    doubled = replace(TAIL_AT_SCALE, base_median_ms=2.0)
    off = residuals(rows_of(doubled, numbers), WANTED)
    assert off["one_leaf"]["p50"] == pytest.approx(1.0)
    assert off["95_percent"]["p50"] > CELL_TOLERANCE


def test_the_fit_is_the_same_each_time_and_finds_its_way_from_elsewhere() -> None:
    """From other round numbers it comes to the same figures."""
    numbers = Numbers.drawn(1000, seed=2)
    once = fit_table(WANTED, numbers)
    assert fit_table(WANTED, numbers) == once
    elsewhere = replace(NEUTRAL, component_median_ms=9.0, stall_share=0.012)
    other = residuals(rows_of(fit_table(WANTED, numbers, elsewhere), numbers), WANTED)
    assert abs(other["100_percent"]["p95"]) < CELL_TOLERANCE


def test_the_base_is_a_line_through_three_points() -> None:
    """A log-normal row gives its own law back."""
    row = {"p50": 2.0, "p95": 2.0 * 5.1804, "p99": 2.0 * 10.2405}
    base = fit_base(NEUTRAL, row)
    assert base.base_median_ms == pytest.approx(2.0, rel=0.001)
    assert base.base_sigma == pytest.approx(1.0, rel=0.001)


def test_the_fit_and_the_simulation_have_one_model() -> None:
    """The same percentiles of the slowest leg, by arrays and by the draws of simulated leaves."""
    rows = rows_of(TAIL_AT_SCALE, Numbers.drawn(QUERIES, seed=3))
    draws = Draws(TAIL_AT_SCALE, 100, seed=3)
    slowest_ms = sorted(max(draws.legs_s(query, 0)) * 1000.0 for query in range(QUERIES))
    assert slowest_ms[QUERIES // 2] == pytest.approx(rows["100_percent"]["p50"], rel=0.06)
    assert slowest_ms[QUERIES * 95 // 100] == pytest.approx(rows["100_percent"]["p95"], rel=0.10)


def test_simulated_leaves_meet_the_shipped_plans() -> None:
    """The numbers stand once, in the plan that real leaves carry out."""
    assert PROFILES["tail-at-scale"] == of_plan(plans.profile("tail-at-scale"))
    with pytest.raises(ValueError, match="cannot carry out"):
        of_plan(plans.profile("flapping"))


def test_the_fit_shows_parameters_and_residuals(fitted: fit.Result) -> None:
    """Of every cell, beside what is shipped."""
    console = Console(width=120, record=True)
    fit.show(fitted, console)
    text = console.export_text()
    assert "stall_alpha" in text
    assert "100_percent p99" in text
    assert "off by" in text
