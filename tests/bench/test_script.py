"""Runs that are written down and replayed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import script
from bench.script import Line, ScriptError

LINES = [
    Line(0.0, "GET", "/search?q=json"),
    Line(0.25, "POST", "/search", '{"q": "json"}'),
    Line(0.25, "GET", "/"),
]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """The same requests at the same times, a line each."""
    path = tmp_path / "run.jsonl"
    script.write(path, LINES)
    assert script.read(path) == LINES
    assert len(path.read_text(encoding="utf-8").splitlines()) == 3
    assert "body" not in path.read_text(encoding="utf-8").splitlines()[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no request"),
        ("\n\n", "holds no request"),
        ('{"at_s": 1, "method": "GET", "path": "/"}\nx', "line 2: JSON is malformed"),
        ('{"at_s": -1, "method": "GET", "path": "/"}', "line 1: Expected `float` >= 0.0"),
        ('{"at_s": 1, "method": "PUT", "path": "/"}', "line 1: Invalid enum value 'PUT'"),
        ('{"at_s": 1, "method": "GET", "path": "x"}', "line 1: Expected `str` matching"),
        ('{"at_s": 1, "method": "GET"}', "line 1: Object missing required field `path`"),
        ('{"at_s": 1, "method": "GET", "path": "/", "at": 1}', "unknown field `at`"),
        (
            "\n".join(f'{{"at_s": {at_s}, "method": "GET", "path": "/"}}\n' for at_s in (2, 1)),
            "line 3: earlier than the one before",
        ),
    ],
)
def test_a_script_that_cannot_be_played_says_where_and_why(
    text: str, said: str, tmp_path: Path
) -> None:
    """File, line, and what is wrong with it."""
    path = tmp_path / "run.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScriptError, match=re.escape(said)) as error:
        script.read(path)
    assert str(path) in str(error.value)


def test_a_script_has_a_longest_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is held in memory."""
    monkeypatch.setattr(script, "LINES_MAX", 2)
    path = tmp_path / "run.jsonl"
    script.write(path, LINES)
    with pytest.raises(ScriptError, match="more than 2 lines"):
        script.read(path)
