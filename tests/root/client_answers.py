"""Bodies as a root sends them, for those that read them."""

from __future__ import annotations

from typing import Any, Final

ANSWER: Final[dict[str, Any]] = {
    "hits": [
        {
            "id": "json.dumps",
            "score": 9.5,
            "fields": {"name": "dumps"},
            "highlights": {"body": "a &lt;b&gt; <em>json</em> \u001b[31mred"},
        }
    ],
    "total": {"value": 1214, "relation": "eq"},
    "facets": {},
    "coverage": {
        "complete": True,
        "shards": 16,
        "answered": 16,
        "documents": 7711,
        "searched": 7711,
        "missing": [],
    },
    "attempts": {
        "sent": 17,
        "hedged": 1,
        "hedge_wins": 1,
        "failed_over": 0,
        "cancelled": 1,
        "denied": 0,
    },
    "generation": "20261130-104500-3f2a",
    "took_ms": 2.4,
    "next": None,
    "warnings": [{"position": 4, "message": "a quote without its pair"}],
    "did_you_mean": None,
}

PARTIAL: Final = {
    **ANSWER,
    "coverage": {
        "complete": False,
        "shards": 16,
        "answered": 15,
        "documents": 7711,
        "searched": 7000,
        "missing": [{"shard": 3, "reason": "timeout"}],
    },
    "total": {"value": 1214, "relation": "gte"},
    "type": "about:blank",
    "title": "Not enough of the index answered",
    "status": 504,
    "detail": "less than was asked for",
}


def problem(status: int, detail: str, **more: Any) -> dict[str, Any]:
    """An error as a root sends it."""
    return {"type": "about:blank", "title": "No", "status": status, "detail": detail, **more}
