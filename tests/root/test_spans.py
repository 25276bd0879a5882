"""Spans tell a query's whole story: who asked, which phases, which attempts, copy of what."""

from __future__ import annotations

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from bench.simulation.scripted import Deed, Leg, by_shard, fails, takes
from root.config import Settings
from root.spans import Spans
from tests.root.test_tracing import HEADER, SPAN, TRACE, asked
from tests.sim.serving import PLENTY, SHARDS, WORK_S, Served, served

EPOCH_S = 1_000_000.0


def exported_of(serving: Served) -> InMemorySpanExporter:
    """Let a root's searches write spans that a test can read."""
    exporter = InMemorySpanExporter()
    serving.root.searches.watchers.append(Spans(EPOCH_S, SimpleSpanProcessor(exporter)).note)
    return exporter


def named(exporter: InMemorySpanExporter, beginning: str) -> list[ReadableSpan]:
    """Spans whose name begins so, in order of their begin."""
    found = [span for span in exporter.get_finished_spans() if span.name.startswith(beginning)]
    return sorted(found, key=lambda span: span.start_time or 0)


def test_a_search_is_a_span_of_the_callers_trace_with_phases_and_attempts() -> None:
    """Each inside the other, at the times at which they happened."""

    async def body(serving: Served) -> None:
        exporter = exported_of(serving)
        arrived_s = serving.now_s
        await asked(serving, "/search?q=a", HEADER)
        request = named(exporter, "search")[0]
        assert request.parent is not None
        assert f"{request.parent.span_id:016x}" == SPAN
        assert {f"{span.context.trace_id:032x}" for span in exporter.get_finished_spans()} == {
            TRACE
        }
        assert request.start_time == round((EPOCH_S + arrived_s) * 1e9)
        phases = named(exporter, "phase")
        assert [phase.name for phase in phases] == ["phase search", "phase fetch"]
        for phase in phases:
            assert phase.parent is not None
            assert phase.parent.span_id == request.context.span_id
        attempts = named(exporter, "primary shard")
        assert len(attempts) >= SHARDS
        assert all(span.attributes is not None for span in attempts)
        assert {(span.attributes or {})["hedgerow.fate"] for span in attempts} == {"won"}
        took_ns = [(span.end_time or 0) - (span.start_time or 0) for span in attempts[:SHARDS]]
        assert all(abs(took - (WORK_S + 0.0002) * 1e9) < 1e4 for took in took_ns)

    served(body, Settings(canary=False))


def test_a_hedge_links_to_what_it_is_a_copy_of() -> None:
    """And to nothing else; the beaten one ends when the query does, at the latest."""

    def primaries_hang(leg: Leg) -> Deed:
        return takes(WORK_S if leg.attempt.kind != "primary" else 1.0)(leg)

    async def body(serving: Served) -> None:
        for _ in range(50):
            await serving.client.get("/search?q=a")
        exporter = exported_of(serving)
        for leaf in serving.fleet.leaves:
            leaf.script = primaries_hang
        await serving.client.get("/search?q=a&hedge=fixed")
        hedges = named(exporter, "hedge shard")
        assert len(hedges) >= SHARDS
        primaries = {span.name.split()[-1]: span for span in reversed(named(exporter, "primary"))}
        for hedge in hedges[:SHARDS]:
            (link,) = hedge.links
            assert link.context.span_id == primaries[hedge.name.split()[-1]].context.span_id

    served(body, Settings(hedge="off", budget=PLENTY, canary=False))


def test_a_failed_attempt_is_an_error_with_its_reason() -> None:
    """The query itself goes on."""

    async def body(serving: Served) -> None:
        exporter = exported_of(serving)
        for leaf in serving.fleet.leaves:
            leaf.script = by_shard({0: fails("error", WORK_S)}, takes(WORK_S))
        await serving.client.get("/search?q=a&min_coverage=0.5")
        spans = exporter.get_finished_spans()
        failed = [span for span in spans if span.status.status_code is StatusCode.ERROR]
        assert failed
        assert {span.status.description for span in failed} == {"error"}

    served(body, Settings(budget=PLENTY, canary=False))


def test_what_its_caller_does_not_sample_is_not_written() -> None:
    """The flag of the header decides."""

    async def body(serving: Served) -> None:
        exporter = exported_of(serving)
        await asked(serving, "/search?q=a", f"00-{TRACE}-{SPAN}-00")
        assert not exporter.get_finished_spans()

    served(body, Settings(canary=False))


def test_the_span_of_a_request_is_the_one_that_its_answer_tells() -> None:
    """Whether the trace begins here or not: who has the header finds the span."""

    async def body(serving: Served) -> None:
        exporter = exported_of(serving)
        for header in (HEADER, None):
            exporter.clear()
            told = (await asked(serving, "/search?q=a", header)).answer().headers["traceparent"]
            (request,) = named(exporter, "search")
            _, trace_id, span_id, _ = told.split("-")
            assert f"{request.context.trace_id:032x}" == trace_id
            assert f"{request.context.span_id:016x}" == span_id
            assert (request.parent is None) == (header is None)

    served(body, Settings(canary=False))
