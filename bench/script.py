r"""A run written down: what is sent, and when, as JSON lines that a later run can replay.

    {"at_s": 0.013, "method": "GET", "path": "/search?q=json"}
    {"at_s": 0.021, "method": "POST", "path": "/search", "body": "{\"q\": \"json\"}"}

The host is not written down: the same script can be played to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

LINES_MAX: Final = 5_000_000
"""A day at 50 requests a second; all of them are held in memory."""

Method = Literal["GET", "POST"]


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One request: sent ``at_s`` seconds after the start. ``body`` is JSON, of a POST."""

    at_s: Annotated[float, msgspec.Meta(ge=0.0, le=1e6)]
    method: Method
    path: Annotated[str, msgspec.Meta(pattern="^/")]
    body: str | None = None


class ScriptError(ValueError):
    """A script that cannot be played; says where and why."""


def read(path: Path) -> list[Line]:
    """The lines of a script, in order of time. Raises ScriptError, naming the line."""
    lines = list(_read(path))
    if not lines:
        raise ScriptError(f"{path} holds no request")
    return lines


def _read(path: Path) -> Iterator[Line]:
    decoder = msgspec.json.Decoder(Line)
    before_s = 0.0
    with path.open("rb") as file:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                line = decoder.decode(text)
            except msgspec.DecodeError as error:
                raise ScriptError(f"{path}, line {number}: {error}") from error
            if line.at_s < before_s:
                raise ScriptError(f"{path}, line {number}: earlier than the one before")
            if number > LINES_MAX:
                raise ScriptError(f"{path} has more than {LINES_MAX:,} lines")
            before_s = line.at_s
            yield line


def write(path: Path, lines: Sequence[Line]) -> None:
    """Write a script down, replacing the file."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        file.writelines(encode(line) + b"\n" for line in lines)
