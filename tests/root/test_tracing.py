"""A request joins its caller's trace, and its answer, its legs and the log say which that is."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulation.scripted import Leg, takes
from root import tracing
from root.config import Settings
from root.tracing import joined
from tests.sim.serving import WORK_S, Exchange, Served, served

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
HEADER = f"00-{TRACE}-{SPAN}-01"


def drawn(count: int) -> bytes:
    """Bytes that are always the same."""
    return random.Random(7).randbytes(count)


def test_a_request_is_a_new_span_in_the_trace_of_its_caller() -> None:
    """Trace and flags stay, the caller's span is the parent."""
    context = joined(HEADER, drawn)
    assert (context.trace_id, context.parent, context.sampled) == (TRACE, SPAN, True)
    assert context.span_id == drawn(8).hex()
    assert context.header == f"00-{TRACE}-{context.span_id}-01"
    assert not joined(f"00-{TRACE}-{SPAN}-00", drawn).sampled
    assert joined(f"00-{TRACE}-{SPAN}-02", drawn).header.endswith("-00")


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    """It may have more parts, which nobody here can know."""
    assert joined(f"01-{TRACE}-{SPAN}-01-what-comes-next", drawn).trace_id == TRACE


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        HEADER.upper(),
        f"{HEADER}-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f" {HEADER}",
    ],
)
def test_what_cannot_be_read_begins_a_trace_of_its_own(header: str | None) -> None:
    """And has no parent."""
    context = joined(header, drawn)
    assert context.trace_id == drawn(16).hex()
    assert (context.parent, context.sampled) == ("", True)


@given(st.text(max_size=80))
def test_no_header_is_an_error(header: str) -> None:
    """Whatever comes, what goes out can be read again."""
    context = joined(header, drawn)
    assert joined(context.header, drawn).trace_id == context.trace_id


async def asked(serving: Served, target: str, header: str | None) -> Exchange:
    """One GET with, or without, a traceparent."""
    exchange = Exchange([b""])
    headers = [] if header is None else [(b"traceparent", header.encode())]
    await serving.client.run("GET", target, exchange, headers)
    return exchange


def test_every_answer_says_its_trace_and_legs_carry_that_of_a_caller() -> None:
    """Errors as well; a trace that begins here is of no use to a leaf, and is not sent there."""
    seen: list[str] = []

    def noting(leg: Leg) -> object:
        seen.append(leg.flight.ask.trace)
        return takes(WORK_S)(leg)

    async def body(serving: Served) -> None:
        for leaf in serving.fleet.leaves:
            leaf.script = noting  # type: ignore[assignment]
        answered = (await asked(serving, "/search?q=a", HEADER)).answer()
        told = answered.headers["traceparent"]
        assert told.split("-")[1] == TRACE
        assert told != HEADER
        assert set(seen) == {told}
        seen.clear()
        for target in ("/search?q=a", "/search?k=0", "/nowhere"):
            own = (await asked(serving, target, None)).answer().headers["traceparent"]
            assert own.split("-")[1] != TRACE
        assert set(seen) == {""}
        (minute,) = (await serving.client.get("/slow")).json["minutes"]
        assert TRACE in {query["trace_id"] for query in minute["slowest"]}

    served(body, Settings(canary=False))


def test_the_log_knows_the_request_it_is_about() -> None:
    """Nothing outside of requests; the trace, and the number once it has one."""
    assert tracing.known() == {}
    context = tracing.current.set(joined(HEADER, drawn))
    number = tracing.query_number.set(12)
    assert tracing.known() == {"query": 12, "trace_id": TRACE}
    tracing.query_number.reset(number)
    assert tracing.known() == {"trace_id": TRACE}
    tracing.current.reset(context)
