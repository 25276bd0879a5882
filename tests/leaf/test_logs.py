"""Logs as JSON: an object a line, whatever is logged."""

from __future__ import annotations

import logging
import sys
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from leaf.logs import JsonLines


def written(record: logging.LogRecord, **context: Any) -> Any:
    """The line of a record, read again."""
    line = JsonLines("leaf0", lambda: context).format(record)
    assert "\n" not in line
    return orjson.loads(line)


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    """A warning, logged on the first of December 2026."""
    made = logging.LogRecord("leaf.asks", logging.WARNING, __file__, 1, message, arguments, None)
    made.created = 1796083200.25
    made.__dict__.update(extra)
    return made


def test_a_line_says_when_where_and_what() -> None:
    """Time in UTC; nothing about a query where there is none."""
    assert written(record("%s of %d", "shard", 3)) == {
        "time": "2026-12-01T00:00:00.250+00:00",
        "level": "warning",
        "logger": "leaf.asks",
        "process": "leaf0",
        "message": "shard of 3",
    }


def test_a_line_about_a_query_says_which() -> None:
    """As it was given with the record, or as it is known from what is being worked on."""
    assert written(record("late", query=7, trace_id="abc"))["query"] == 7
    known = written(record("late"), query=8, trace_id="def")
    assert (known["query"], known["trace_id"]) == (8, "def")
    assert "trace_id" not in written(record("late", query=None, trace_id=""))


def test_an_exception_is_one_member_of_the_line() -> None:
    """With its stack, line breaks and all."""
    made = record("failed")
    try:
        int("broken")
    except ValueError:
        made.exc_info = sys.exc_info()
    assert "ValueError: invalid literal" in written(made)["exception"]


@given(st.text())
def test_no_message_breaks_a_line(message: str) -> None:
    """Quotes, line breaks, control characters: they come back as they were."""
    assert written(record("%s", message))["message"] == message
