"""Spans for OpenTelemetry: a request, its phases, their attempts; copies link to the original.

Nothing is traced while a query runs: its attempts already know when each began and ended, so the
spans are written down once it is over. The package is optional (``hedgerow[otel]``) and imported
here alone; where spans go is told by the OTEL_ variables that all its exporters read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from root.pursuit import Phase, Pursuit
from root.race import Attempt
from root.tracing import TraceContext

HEDGES: Final = ("hedge", "tied")


class _Ids(IdGenerator):
    """The ids of spans: of a request those that its answer has told already, else random ones."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()
        self.next_span: TraceContext | None = None

    def generate_span_id(self) -> int:
        """Return the id of the next span."""
        told, self.next_span = self.next_span, None
        return int(told.span_id, 16) if told else self._random.generate_span_id()

    def generate_trace_id(self) -> int:
        """Return the id of a trace that begins with the next span; it is asked for first."""
        told = self.next_span
        return int(told.trace_id, 16) if told else self._random.generate_trace_id()


class Spans:
    """Writes the spans of requests that are over.

    ``epoch_s`` is what the root's clock showed at the Unix epoch, so to speak: wall time less
    the clock's.
    """

    def __init__(self, epoch_s: float, processor: SpanProcessor, name: str = "root") -> None:
        """``processor`` is given every span; ``name`` is the root's."""
        self._ids = _Ids()
        resource = Resource.create({"service.name": f"hedgerow-{name}"})
        provider = TracerProvider(resource=resource, id_generator=self._ids)
        provider.add_span_processor(processor)
        self._provider = provider
        self._tracer: Tracer = provider.get_tracer("hedgerow.root")
        self._epoch_s = epoch_s

    def note(self, pursuit: Pursuit) -> None:
        """Write down a request with all of its phases and attempts, if its trace is sampled."""
        trace = pursuit.trace
        if trace is None or not trace.sampled or not pursuit.phases:
            return
        self._ids.next_span = trace
        request = self._tracer.start_span(
            "search",
            context=_caller(trace),
            kind=SpanKind.SERVER,
            start_time=self._ns(pursuit.arrived_s),
            attributes={
                "hedgerow.query": pursuit.number,
                "hedgerow.shards_missing": len(pursuit.missing),
            },
        )
        inside = set_span_in_context(request)
        for phase in pursuit.phases:
            self._phase(phase, inside)
        request.end(self._ns(pursuit.phases[-1].outcome.decided_s))

    def close(self) -> None:
        """Send what has not been sent yet."""
        self._provider.shutdown()

    def _phase(self, phase: Phase, inside: Context) -> None:
        span = self._tracer.start_span(
            f"phase {phase.name}",
            context=inside,
            start_time=self._ns(phase.started_s),
            attributes={"hedgerow.query_class": phase.query_class},
        )
        self._attempts(phase, set_span_in_context(span))
        span.end(self._ns(phase.outcome.decided_s))

    def _attempts(self, phase: Phase, inside: Context) -> None:
        """Write each attempt; a copy links to the shard's first attempt."""
        firsts: dict[int, Span] = {}
        for attempt in phase.attempts:
            first = firsts.get(attempt.shard)
            links = _links(attempt, first)
            span = self._tracer.start_span(
                f"{attempt.kind} shard {attempt.shard}",
                context=inside,
                kind=SpanKind.CLIENT,
                links=links,
                start_time=self._ns(attempt.sent_s),
                attributes={
                    "server.address": attempt.leaf.name,
                    "hedgerow.shard": attempt.shard,
                    "hedgerow.kind": attempt.kind,
                    "hedgerow.fate": attempt.fate,
                    "hedgerow.reason": attempt.reason or "",
                    "hedgerow.queue_us": attempt.queue_us,
                    "hedgerow.service_us": attempt.service_us,
                },
            )
            if attempt.fate == "failed":
                span.set_status(Status(StatusCode.ERROR, attempt.reason))
            firsts.setdefault(attempt.shard, span)
            over = attempt.fate != "in_flight"
            span.end(self._ns(attempt.ended_s if over else phase.outcome.decided_s))

    def _ns(self, at_s: float) -> int:
        return round((self._epoch_s + at_s) * 1e9)


def _links(attempt: Attempt, first: Span | None) -> Sequence[Link]:
    if first is None or attempt.kind not in HEDGES:
        return ()
    return (Link(first.get_span_context(), {"hedgerow.relation": "copy of"}),)


def _caller(trace: TraceContext) -> Context:
    """Return the context of the caller's span; an empty one where the trace begins here."""
    if not trace.parent:
        return Context()
    context = SpanContext(
        int(trace.trace_id, 16), int(trace.parent, 16), is_remote=True, trace_flags=TraceFlags(1)
    )
    return set_span_in_context(NonRecordingSpan(context), Context())


def exported(name: str, epoch_s: float) -> Spans:
    """Return spans that go out by OTLP over HTTP, in batches, from a thread of their own."""
    return Spans(epoch_s, BatchSpanProcessor(OTLPSpanExporter()), name)
