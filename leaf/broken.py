"""Reading what a leaf has left as JSON in its answer, and what it is when it cannot be read."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from leaf.selection import SortValue


class BrokenAnswer(ValueError):
    """An answer whose hits are not what the contract says."""


RANKED: Final = msgspec.json.Decoder(tuple[list[float], list[int]])
SORTED: Final = msgspec.json.Decoder(tuple[list[list[SortValue]], list[int]])
FACETS: Final = msgspec.json.Decoder(list[Any])
"""Scores and ordinals; rows of sort values and ordinals; an entry for each facet."""

_T = TypeVar("_T")


def paired(
    decoder: msgspec.json.Decoder[tuple[list[_T], list[int]]], raw: msgspec.Raw
) -> tuple[list[_T], list[int]]:
    """Return two lists of one length. Raises BrokenAnswer."""
    found, ordinals = decoded(decoder, raw)
    if len(found) != len(ordinals):
        raise BrokenAnswer(f"{len(found)} scores for {len(ordinals)} ordinals")
    return found, ordinals


def decoded(decoder: msgspec.json.Decoder[_T], raw: msgspec.Raw) -> _T:
    """Return what stands in a raw member. Raises BrokenAnswer."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BrokenAnswer(f"hits that cannot be read: {error}") from None
