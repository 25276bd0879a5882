"""What can go wrong in a leaf, split by who must act.

    LeafError
     ├── BadQuery      the caller: no replica will answer this query
     ├── BadFrame      the peer: it does not speak the protocol; the connection ends
     └── BadSetting    the operator: the leaf does not start; one sentence, exit code 2

A shard that fails while searching raises whatever it likes: that is ours to fix, is logged
with its traceback, and reaches the root as a refusal with reason ``error``.
"""

from __future__ import annotations

import re
from typing import Final

_FIELD_AT: Final = re.compile(r"at `\$\.?([^`]*)`")
_FIELD_NAMED: Final = re.compile(r"(?:unknown|required) field `([^`]*)`")


class LeafError(Exception):
    """Root of the tree; its text is one sentence for the one who must act."""


class BadQuery(LeafError):
    """The query cannot be answered by any leaf; the text names what is wrong with it.

    ``field`` is the member of the request that is at fault.
    """

    def __init__(self, message: str, field: str = "query") -> None:
        super().__init__(message)
        self.field = field


class BadFrame(LeafError):
    """A frame breaks the contract; the text says how, in words for the peer's log."""

    def __init__(self, message: str, close_code: int) -> None:
        super().__init__(message)
        self.close_code = close_code


class BadSetting(LeafError):
    """A setting, or what it points to, keeps the leaf from starting."""


def field_of(complaint: str) -> str:
    """Return the field that a decoder complains about; ``body`` when it is the whole."""
    parts = [found[1] for at in (_FIELD_AT, _FIELD_NAMED) if (found := at.search(complaint))]
    return ".".join(part for part in parts if part) or "body"
