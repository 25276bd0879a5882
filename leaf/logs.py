"""How roots and leaves write their logs: lines for people, or JSON for machines.

What belongs to a query says so: a record's ``query`` (the root's number of it) and ``trace_id``
are given with ``extra``, or, at the root, known from the request that is being worked on.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

import orjson

Format = Literal["text", "json"]

EXTRA: Final = ("query", "trace_id")
"""What a record may say of the query it belongs to."""

Context = Callable[[], Mapping[str, Any]]
"""Returns what is known of the query that is being worked on."""


class JsonLines(logging.Formatter):
    """One JSON object a line: ``time`` (UTC), ``level``, ``logger``, ``process``, ``message``, and
    where they apply ``query``, ``trace_id`` and ``exception``.
    """

    def __init__(self, process: str, context: Context) -> None:
        """``process`` is the name of this root or leaf."""
        super().__init__()
        self._process = process
        self._context = context

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": self._process,
            "message": record.getMessage(),
            **self._context(),
        }
        line |= {name: record.__dict__[name] for name in EXTRA if record.__dict__.get(name)}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def set_up(
    process: str, level: str, written: Format, context: Context = dict, *, text: str
) -> None:
    """Send all logs to the standard error output. ``text`` is the format for people."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonLines(process, context) if written == "json" else logging.Formatter(text)
    )
    logging.basicConfig(level=level.upper(), handlers=[handler])
