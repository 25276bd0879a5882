"""What can go wrong at the root, split by who must act.

    HedgerowError
    ├── CallerError                 the request is at fault; says which field
    │   ├── BadRequest              400
    │   ├── BodyTooLarge            413
    │   ├── BodyTooSlow             408
    │   ├── UnknownDocument         404
    │   ├── UnknownCollection       404
    │   ├── Gone                    410
    │   └── Quarantined             422, says when to try again
    ├── FleetError                  the fleet cannot answer now
    │   ├── Overloaded              429, leaves pushed back; says when to try again
    │   │   └── TooManyRequests     429, before any leaf was asked
    │   ├── NoShards                503, nothing at all can be searched
    │   └── NotCovered              504, less than min_coverage in time; carries what there is
    └── OperatorError               a setting is wrong; the process does not start

A failing leaf is none of these: it is an event for the race (``root.race``).
"""

from __future__ import annotations

from typing import Any


class HedgerowError(Exception):
    """Base of everything the root raises on purpose."""


class CallerError(HedgerowError):
    """The request is at fault. ``field`` names the part of it; ``status`` is the HTTP status,
    ``reason`` what it is counted as.
    """

    status = 400
    title = "Bad request"
    reason = "bad_request"

    def __init__(self, field: str, detail: str) -> None:
        """``detail`` is one sentence for a person."""
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail


class BadRequest(CallerError):
    """A parameter is unknown, of the wrong type, out of range or cannot be parsed."""


class BodyTooLarge(CallerError):
    """The body is over the limit."""

    status = 413
    title = "Body too large"
    reason = "body_too_large"


class BodyTooSlow(CallerError):
    """The body did not come in time."""

    status = 408
    title = "Body too slow"
    reason = "body_too_slow"


class UnknownDocument(CallerError):
    """No shard holds a document of that id."""

    status = 404
    title = "Not found"
    reason = "unknown_document"


class UnknownCollection(CallerError):
    """No leaf serves a collection of that name."""

    status = 404
    title = "Not found"
    reason = "unknown_collection"


class Gone(CallerError):
    """What a cursor goes on in is no longer there."""

    status = 410
    title = "Gone"


class Quarantined(CallerError):
    """The query is like one that has just ended or held up a leaf. ``retry_after_s`` is for how
    long it is refused, in whole seconds.
    """

    status = 422
    title = "Dangerous query"
    reason = "quarantined"

    def __init__(self, field: str, detail: str, retry_after_s: int) -> None:
        """``detail`` is one sentence for a person."""
        super().__init__(field, detail)
        self.retry_after_s = retry_after_s


class FleetError(HedgerowError):
    """The fleet cannot answer now; ``partial`` is the body of what there is, if anything."""

    status = 503
    title = "Not available"
    reason = "no_shards"

    def __init__(self, detail: str, partial: dict[str, Any] | None = None) -> None:
        """``detail`` is one sentence for a person."""
        super().__init__(detail)
        self.detail = detail
        self.partial = partial


class Overloaded(FleetError):
    """Leaves pushed back. ``retry_after_s`` is when to try again, in whole seconds."""

    status = 429
    title = "Overloaded"
    reason = "leaves_busy"

    def __init__(self, detail: str, retry_after_s: int) -> None:
        """``detail`` is one sentence for a person."""
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class TooManyRequests(Overloaded):
    """As many requests are in work as the operator allows."""

    reason = "too_many_requests"


class NoShards(FleetError):
    """Nothing can be searched: no leaf, or no generation that any leaf holds."""


class NotCovered(FleetError):
    """Fewer documents were searched in time than the request asks for."""

    status = 504
    title = "Not enough of the index answered"
    reason = "not_covered"


class OperatorError(HedgerowError):
    """A setting is wrong. One sentence; the process ends with exit code 2."""
