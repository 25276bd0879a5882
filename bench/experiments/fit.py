"""The profiles' parameters, found again from the published figures, and what is left over.

``tail-at-scale`` is solved for from round numbers; ``bigtable`` from its own shape. Shipped is
what this printed, rounded to two digits: its residuals are shown beside those of the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

import msgspec
from rich.console import Console

from bench import report
from bench.fitting import Numbers, fit_rare_stalls, fit_table, residuals, rows_of
from bench.published import BIGTABLE, BIGTABLE_HEDGE_MS, LEAVES_IN_A_FAN_OUT, Row
from bench.simulation.profiles import PROFILES, TAIL_AT_SCALE, Profile

PARAMETERS: Final = (
    *("base_median_ms", "base_sigma", "component_median_ms", "component_sigma"),
    *("bad_query_share", "bad_query_factor", "component_share_power"),
    *("stall_share", "stall_min_ms", "stall_alpha"),
)


class Parameter(msgspec.Struct, frozen=True):
    """One parameter, as fitted and as it stands in the profile that is shipped."""

    fitted: float
    shipped: float


class Cell(msgspec.Struct, frozen=True):
    """A figure of the table in milliseconds, and by how large a share the model is above it."""

    published: float
    fitted: float
    fitted_off: float
    shipped: float
    shipped_off: float


class Result(msgspec.Struct, frozen=True):
    """``rows[row][percentile]``; ``bigtable`` is the second profile."""

    queries: int
    parameters: dict[str, Parameter]
    rows: dict[str, dict[str, Cell]]
    bigtable: dict[str, Parameter]

    @property
    def worst(self) -> float:
        """By how much the worst cell of the shipped profile is off."""
        return max(abs(cell.shipped_off) for row in self.rows.values() for cell in row.values())


def run(queries: int, seed: int, told: Callable[[float], None] = lambda _: None) -> Result:
    """Fit both profiles with so many queries of a hundred legs."""
    numbers = Numbers.drawn(queries, seed)
    wanted = LEAVES_IN_A_FAN_OUT.rows
    fitted = fit_table(wanted, numbers, told=told)
    rare = PROFILES["bigtable"]
    figures = BIGTABLE.rows
    stalls = fit_rare_stalls(
        rare,
        numbers,
        p999_ms=figures["off"]["p99.9"],
        late_ms=BIGTABLE_HEDGE_MS,
        late_share=figures["fixed"]["extra_load"],
    )
    return Result(
        queries,
        _beside(fitted, TAIL_AT_SCALE),
        _cells(wanted, rows_of(fitted, numbers), rows_of(TAIL_AT_SCALE, numbers)),
        _beside(stalls, rare),
    )


def _beside(fitted: Profile, shipped: Profile) -> dict[str, Parameter]:
    values, others = asdict(fitted), asdict(shipped)
    return {name: Parameter(values[name], others[name]) for name in PARAMETERS}


def _cells(
    wanted: Mapping[str, Row], fitted: Mapping[str, Row], shipped: Mapping[str, Row]
) -> dict[str, dict[str, Cell]]:
    fitted_off, shipped_off = residuals(fitted, wanted), residuals(shipped, wanted)
    return {
        row: {
            name: Cell(
                figure,
                fitted[row][name],
                fitted_off[row][name],
                shipped[row][name],
                shipped_off[row][name],
            )
            for name, figure in figures.items()
        }
        for row, figures in wanted.items()
    }


def show(result: Result, console: Console) -> None:
    """Print the parameters, and the residual of each cell."""
    _show_parameters("tail-at-scale", result.parameters, console)
    rows: list[list[object]] = [
        [
            f"{row} {name}",
            cell.published,
            f"{cell.fitted:.2f}",
            f"{cell.fitted_off:+.1%}",
            f"{cell.shipped:.2f}",
            f"{cell.shipped_off:+.1%}",
        ]
        for row, cells in result.rows.items()
        for name, cell in cells.items()
    ]
    columns = ["ms", "published", "fitted", "off by", "shipped", "off by"]
    report.show_table(f"{result.queries} queries of a hundred legs", columns, rows, console)
    _show_parameters("bigtable", result.bigtable, console)


def _show_parameters(name: str, parameters: Mapping[str, Any], console: Console) -> None:
    rows = [[name, one.fitted, one.shipped] for name, one in parameters.items()]
    report.show_table(name, ["", "fitted", "shipped"], rows, console)
