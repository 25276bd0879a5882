"""Pictures of results, in one style: distributions, bars beside published ones, waterfalls.

matplotlib is imported only when a picture is drawn, for it is an extra. Colours are those of
M. Okabe and K. Ito (Color Universal Design, 2008), which colour-blind people tell apart, and
no line differs from another by its colour alone.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.comparison import Comparison
from bench.confidence import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLACK: Final = "#222222"
GREY: Final = "#9a9a9a"
ORANGE: Final = "#d55e00"
BLUE: Final = "#0072b2"
GREEN: Final = "#009e73"

COLOURS: Final = {
    "off": ORANGE,
    "adaptive": BLUE,
    "tied": GREEN,
    "together": "#cc79a7",
    "fixed": "#e69f00",
    "quantile": "#56b4e9",
    "published": GREY,
    "clairvoyant": BLACK,
}
"""An arm has the same colour in every picture."""

OTHERS: Final = ("#332288", "#882255", "#44aa99", "#999933", "#661100")
"""For arms that have none of their own, in their order."""

DASHES: Final = ("-", "--", "-.", ":")

DOTS_PER_INCH: Final = 150
PANEL_INCHES: Final = (7.0, 4.6)

STYLE: Final[dict[Any, Any]] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": BLACK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "xtick.color": BLACK,
    "ytick.color": BLACK,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}

LABEL_POINTS: Final = 7.5
LABEL_POINTS_SMALL: Final = 6.0
"""Of the numbers above bars; small where three or more stand side by side."""

TAIL_TICKS: Final = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999)


@contextlib.contextmanager
def page(
    path: Path, title: str, caption: str = "", panels: tuple[int, int] = (1, 1)
) -> Iterator[list[Axes]]:
    """A picture of rows times columns of panels: drawn by the block, then written to ``path``."""
    import matplotlib as mpl  # noqa: PLC0415 (an extra: only who draws needs it)
    from matplotlib.figure import Figure  # noqa: PLC0415

    rows, columns = panels
    with mpl.rc_context(STYLE):
        size = (PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows + 0.8)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
        if caption:
            figure.supxlabel(caption, x=0.01, ha="left", fontsize=6.5, color="#777777", wrap=True)
        yield list(axes.flat)
        figure.savefig(path, format="png", dpi=DOTS_PER_INCH)


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each arm: its own, also with a share behind it (``adaptive@0.05``)."""
    others = iter(OTHERS * (1 + len(names) // len(OTHERS)))
    return {name: COLOURS.get(name.partition("@")[0]) or next(others) for name in names}


# --- distributions ------------------------------------------------------------------------


def tail(axes: Axes, curves: Mapping[str, Curve], title: str = "", unit: str = "ms") -> None:
    """Distributions: how many per cent (up, on a tail axis) take at most so long (across)."""
    named = colours(list(curves))
    for (name, curve), dash in zip(curves.items(), cycle(DASHES)):
        points = [(value, _tail(percentile)) for percentile, value in curve]
        across, up = zip(*points, strict=True) if points else ((), ())
        axes.plot(across, up, dash, color=named[name], label=name)
    axes.set_title(title)
    axes.set_xlabel(f"latency, {unit}")
    axes.set_ylabel("percentile")
    axes.set_xscale("log")
    _plain_numbers(axes, "x")
    highest = max((curve[-1][0] for curve in curves.values() if curve), default=99.0)
    ticks = [tick for tick in TAIL_TICKS if _tail(tick) <= _tail(highest) + 0.3]
    axes.set_yticks([_tail(tick) for tick in ticks], [f"{tick:g}" for tick in ticks])
    axes.set_ylim(0.0, _tail(highest) * 1.02 or 1.0)
    axes.legend(loc="lower right")


def _tail(percentile: float) -> float:
    """How many nines: where a percentile stands on the tail axis."""
    return -math.log10(max(1.0 - percentile / 100.0, 1e-9))


def _plain_numbers(axes: Axes, which: str) -> None:
    """Ticks of a logarithmic axis as 2, 50, 1000: also between its powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415

    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(base=10.0, subs=(1.0, 2.0, 5.0), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


# --- lines --------------------------------------------------------------------------------


def lines(
    axes: Axes,
    series: Mapping[str, Sequence[tuple[float, float]]],
    title: str,
    across: str,
    up: str,
    *,
    log: str = "",
) -> None:
    """Points (across, up) joined by name; ``log`` names the axes that are logarithmic."""
    named = colours(list(series))
    for (name, points), dash in zip(series.items(), cycle(DASHES)):
        x, y = zip(*points, strict=True) if points else ((), ())
        axes.plot(x, y, dash, marker="o", markersize=3.5, color=named[name], label=name)
    axes.set_title(title)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    for which in log:
        axes.set(**{f"{which}scale": "log"})
        _plain_numbers(axes, which)
    _legend_above(axes)


# --- bars ---------------------------------------------------------------------------------


def bars(axes: Axes, figures: Sequence[Comparison], title: str = "", *, log: bool = True) -> None:
    """Published and measured figures side by side, each with its number and its interval."""
    names = list(dict.fromkeys(one.name for one in figures))
    arms = list(dict.fromkeys(one.arm or "measured" for one in figures))
    published = {one.name: one.published for one in figures if one.published is not None}
    series = [*(["published"] if published else []), *arms]
    width = 0.8 / len(series)
    named = colours(series)
    for place, arm in enumerate(series):
        for at, name in enumerate(names):
            left = at - 0.4 + width * (place + 0.5)
            label = arm if at == 0 else None
            if arm == "published":
                height = published.get(name)
                _bar(axes, left, width, height, named[arm], hatch="///", label=label)
                continue
            for one in figures:
                if (one.name, one.arm or "measured") == (name, arm):
                    _bar(axes, left, width, one.measured, named[arm], label=label)
                    _whisker(axes, left, one)
    axes.set_xticks(range(len(names)), names)
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.set_title(title)
    axes.set_ylabel(figures[0].unit if figures else "")
    if log:
        axes.set_yscale("log")
        _plain_numbers(axes, "y")
    axes.margins(y=0.12)
    _legend_above(axes)


def _bar(
    axes: Axes, at: float, width: float, height: float | None, colour: str, **how: Any
) -> None:
    if how.get("hatch"):
        how |= {"facecolor": "white", "edgecolor": colour, "linewidth": 0.8}
    else:
        how |= {"color": colour}
    axes.bar(at, height or 0.0, width * 0.92, **how)
    if height:
        text = f"{height:.3g}" if height < 1000 else f"{height:.0f}"
        size = LABEL_POINTS if width > 0.3 else LABEL_POINTS_SMALL
        axes.annotate(
            text, (at, height), (0, 3), textcoords="offset points", ha="center", fontsize=size
        )


def _whisker(axes: Axes, at: float, one: Comparison) -> None:
    if one.low is not None and one.high is not None:
        below, above = max(0.0, one.measured - one.low), max(0.0, one.high - one.measured)
        axes.errorbar(at, one.measured, [[below], [above]], color=BLACK, capsize=2, linewidth=0.9)


# --- the waterfall of a query -------------------------------------------------------------


class Span(NamedTuple):
    """One attempt: for which shard, of which kind, and from when to when it was in flight."""

    shard: int
    kind: str
    fate: str
    begin_ms: float
    end_ms: float


ROWS_MAX: Final = 40
"""Legs of a waterfall: the latest; the others have long ended."""


def spans(traced: Mapping[str, Any]) -> list[Span]:
    """The attempts of one phase of an answer's ``trace``; what is in flight ends when it does."""
    decided_ms = float(traced["decided_ms"])
    return [
        Span(
            one["shard"],
            one["kind"],
            one["fate"],
            one["sent_ms"],
            decided_ms if one["ended_ms"] is None else one["ended_ms"],
        )
        for one in traced["attempts"]
    ]


def waterfall(axes: Axes, attempts: Sequence[Span], title: str = "") -> None:
    """The legs of one query, the last to be answered on top: attempts as bars in time."""
    answered_ms = {span.shard: span.end_ms for span in attempts if span.fate == "won"}
    ends_ms = {
        span.shard: answered_ms.get(
            span.shard, max(s.end_ms for s in attempts if s.shard == span.shard)
        )
        for span in attempts
    }
    latest = sorted(ends_ms, key=lambda shard: ends_ms[shard])[-ROWS_MAX:]
    hedged = {span.shard for span in attempts if span.kind != "primary"}
    for row, shard in enumerate(latest):
        for span in attempts:
            if span.shard == shard:
                _attempt(axes, row, span, shared=shard in hedged)
    end_ms = max(ends_ms.values(), default=0.0)
    axes.axvline(end_ms, color=BLACK, linewidth=1.0, linestyle="--")
    axes.annotate(
        f"{end_ms:.3g} ms", (end_ms, 0), (-4, 4), textcoords="offset points", ha="right", fontsize=9
    )
    axes.set_yticks([])
    axes.set_ylabel(f"the {len(latest)} latest of {len(ends_ms)} legs")
    axes.set_xlabel("since the request arrived, ms")
    axes.set_title(title)
    axes.grid(visible=False, axis="y")
    _waterfall_legend(axes)


def _attempt(axes: Axes, row: int, span: Span, *, shared: bool) -> None:
    first = span.kind == "primary"
    height = 0.4 if shared else 0.8
    middle = row + (0.2 if first else -0.2) if shared else float(row)
    won = span.fate == "won"
    axes.barh(
        middle,
        max(span.end_ms - span.begin_ms, 0.0),
        height,
        left=span.begin_ms,
        color=(BLUE if first else ORANGE) if won else "white",
        edgecolor=BLUE if first else ORANGE,
        linewidth=0.7,
        hatch=None if won else "////",
    )


def _waterfall_legend(axes: Axes) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415

    _legend_above(
        axes,
        handles=[
            Patch(facecolor=BLUE, edgecolor=BLUE, label="first attempt"),
            Patch(facecolor=ORANGE, edgecolor=ORANGE, label="hedge"),
            Patch(facecolor="white", edgecolor=BLACK, hatch="////", label="beaten"),
        ],
    )


def _legend_above(axes: Axes, **what: Any) -> None:
    """A legend in the line of the title, where it hides nothing."""
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 0.985),
        ncols=6,
        fontsize=8.5,
        columnspacing=1.2,
        handlelength=1.4,
        **what,
    )
