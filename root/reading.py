"""What a request asks for, beside the fields that there are: its query, checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from index_data.manifest import Field
from leaf.protocol import Query
from root.errors import BadRequest
from root.language import Reading, parse
from root.query import check_tree, combined
from root.requests import SearchRequest


def understood(
    request: SearchRequest, fields: Iterable[Field], likeness: Query | None = None
) -> Reading:
    """Return the query of a request, as its options combine it; ``likeness`` is that of a
    request for what is similar to a document. Raises BadRequest.
    """
    known = {field.name: field for field in fields}
    _check_names("fields", request.fields, "field", known)
    texts = [field.name for field in known.values() if field.type == "text"]
    _check_names("highlight", request.highlight, "text field", texts)
    if request.q is not None:
        reading = parse(request.q, known, strict=request.strict)
    else:
        query = request.query or likeness
        assert query is not None  # noqa: S101 (the request was validated)
        check_tree(query, known)
        reading = Reading(query)
    if request.combine == "sum":
        return reading
    return replace(reading, query=combined(reading.query, request.tie_breaker))


def _check_names(
    member: str, names: Iterable[str] | None, what: str, known: Collection[str]
) -> None:
    """Raise BadRequest where a member of a request names a field that there is not."""
    for name in names or ():
        if name not in known:
            there_are = ", ".join(sorted(known)) or "none"
            raise BadRequest(member, f"there is no {what} {name!r:.80}; there are {there_are}")
