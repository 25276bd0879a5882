"""What a person sees in a terminal: an answer, its race, and the live view, as rich shows them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Final

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from root.bodies import Attempts, Coverage, Hit, SearchAnswer, TracedAttempt, TracedPhase
from root.states import (
    CountedPercentiles,
    LiveAnswer,
    LiveHedging,
    LiveLeaf,
    LiveMinute,
    Percentiles,
)

MATCH: Final = "bold yellow"
STATES: Final = {"well": "green", "probation": "yellow", "lost": "bold red"}
_EM: Final = re.compile(r"<em>(.*?)</em>", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Return a text without what a terminal would obey."""
    return _CONTROL.sub("�", text)


def highlighted(snippet: str) -> Text:
    """Return a snippet, which is HTML, with its matches marked."""
    shown = Text()
    for place, part in enumerate(_EM.split(snippet)):
        shown.append(printable(html.unescape(part)), MATCH if place % 2 else "")
    return shown


def answer(found: SearchAnswer) -> RenderableType:
    """Return the page, then how much was searched and what it took."""
    lines: list[RenderableType] = [
        Text(f"at {warning.position}: {warning.message}", "yellow") for warning in found.warnings
    ]
    for place, hit in enumerate(found.hits, 1):
        lines.extend(_hit(place, hit))
    if not found.hits:
        lines.append(Text("Nothing found"))
    if found.did_you_mean is not None:
        lines.append(Text(f"Did you mean: {printable(found.did_you_mean)}", "bold"))
    lines.append(summary(found))
    return Group(*lines)


def _hit(place: int, hit: Hit) -> Iterable[RenderableType]:
    yield Text.assemble(
        (f"{place:>3}. ", "dim"), (printable(hit.id), "bold green"), (f"  {hit.score:.3f}", "dim")
    )
    for snippet in hit.highlights.values():
        shown = highlighted(snippet)
        shown.pad_left(5)
        yield shown


def summary(found: SearchAnswer) -> Text:
    """Return one line: hits, time, coverage, attempts."""
    at_least = "at least " if found.total.relation == "gte" else ""
    said = [f"{at_least}{found.total.value:,} hits in {found.took_ms:.1f} ms"]
    said += [covered(found.coverage), tried(found.attempts)]
    return Text("; ".join(said), "dim" if found.coverage.complete else "yellow")


def covered(coverage: Coverage) -> str:
    """Say how much was searched, and why not the rest."""
    if coverage.complete:
        return f"all {coverage.documents:,} documents in {coverage.shards} shards searched"
    missing = ", ".join(f"{each.shard} ({each.reason})" for each in coverage.missing)
    return f"{coverage.searched:,} of {coverage.documents:,} documents searched, without {missing}"


def tried(attempts: Attempts) -> str:
    """Say what was sent, and what of it was more than one a leg."""
    more = {
        "hedged": attempts.hedged,
        "of them won": attempts.hedge_wins,
        "failed over": attempts.failed_over,
        "cancelled": attempts.cancelled,
        "denied": attempts.denied,
    }
    said = "".join(f", {count} {name}" for name, count in more.items() if count)
    return f"{attempts.sent} attempts{said}"


def race(phases: Iterable[TracedPhase]) -> RenderableType:
    """Return a table an attempt: which leaf was asked when, and what became of it."""
    table = Table("phase", "shard", "leaf", "kind", "fate", "sent", "ended", "queue", "work")
    for phase in phases:
        for each in sorted(phase.attempts, key=lambda one: (one.shard, one.sent_ms)):
            table.add_row(phase.phase, *_attempt(each))
    for column in table.columns[5:]:
        column.justify = "right"
    return table


def _attempt(each: TracedAttempt) -> Iterable[str]:
    fate = each.fate if each.reason is msgspec.UNSET else f"{each.fate} ({each.reason})"
    times = (each.sent_ms, each.ended_ms, each.queue_ms, each.service_ms)
    return (str(each.shard), printable(each.replica), each.kind, fate, *map(milliseconds, times))


def explained(found: SearchAnswer) -> RenderableType:
    """Return a table of what each hit's score is made of, and where the hit was found."""
    table = Table("hit", "shard", "field", "text", "score")
    table.columns[-1].justify = "right"
    for hit in found.hits:
        shard = "" if hit.shard is msgspec.UNSET else str(hit.shard)
        table.add_row(Text(printable(hit.id), "bold green"), shard, "", "", f"{hit.score:.3f}")
        for share in () if hit.explanation is msgspec.UNSET else hit.explanation:
            field, text = printable(share.field), printable(share.text)
            table.add_row("", "", Text(field), Text(text), f"{share.score:.3f}")
    return table


def milliseconds(value: float | None) -> str:
    """Return a time as people read it; a dash where there is none."""
    return "-" if value is None else f"{value:,.1f}"


def live(state: LiveAnswer) -> RenderableType:
    """Return the last minute: what took how long, what hedging did, and each leaf."""
    minute, hedging = state.minute, state.hedging
    table = Table("milliseconds", "p50", "p95", "p99", title=f"the last {minute.seconds:.0f} s")
    rows: dict[str, CountedPercentiles | Percentiles] = {
        "whole requests": minute.requests,
        "one random leaf finishes": minute.fan_outs.one_leaf,
        "95 % of leaves finish": minute.fan_outs.most_leaves,
        "100 % of leaves finish": minute.fan_outs.all_leaves,
    }
    for name, row in rows.items():
        table.add_row(name, *map(milliseconds, (row.p50, row.p95, row.p99)))
    for column in table.columns[1:]:
        column.justify = "right"
    said = [_spent(minute, hedging)]
    said += [
        f"{each.collection}: no connected leaf has shards {', '.join(map(str, each.uncovered))}"
        for each in state.collections
        if each.uncovered
    ]
    return Group(Text(_busy(state)), table, *map(Text, said), leaves(state.leaves))


def _busy(state: LiveAnswer) -> str:
    minute = state.minute
    rate = minute.requests.count / minute.seconds if minute.seconds else 0.0
    now = f"{rate:,.1f} requests a second, {state.in_flight} in work"
    documents = sum(each.documents for each in state.collections)
    shards = sum(each.shards for each in state.collections)
    return f"{now}; {documents:,} documents in {shards} shards"


def _spent(minute: LiveMinute, hedging: LiveHedging) -> str:
    """Say what extra attempts there were beside what is allowed, and what is left."""
    attempts = minute.attempts
    share = attempts.extra / attempts.first if attempts.first else 0.0
    allowed = f"{share:.1%} extra attempts, {hedging.max_extra_load:.0%} allowed"
    won = f"{attempts.hedges} hedges, {attempts.hedge_wins} won, {attempts.denied} denied"
    left = f"{hedging.tokens:,.0f} of {hedging.burst:,.0f} tokens left"
    resting = f"; resting for {hedging.resting}" if hedging.resting else ""
    return f"{allowed} ({hedging.policy}): {won}, {left}{resting}"


def leaves(states: Iterable[LiveLeaf]) -> RenderableType:
    """Return a table of leaves with their state."""
    table = Table("leaf", "state", "leg ms", "in flight", "shards", "what is wrong")
    for each in states:
        wrong = printable(each.problem or each.notice or "")
        table.add_row(
            Text(printable(each.leaf)),
            Text(each.state, STATES[each.state]),
            milliseconds(each.latency_ms),
            str(each.in_flight),
            str(each.shards),
            Text(wrong),
        )
    return table
