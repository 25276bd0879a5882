"""What follows from a failure: whether another replica is tried, who pays, and who is to blame."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from leaf.protocol import RefusalReason

FailureReason = RefusalReason | Literal["gone", "garbage"]
MissingReason = Literal["timeout", "no_replica", "error", "refused"]


class Conduct(NamedTuple):
    """What follows from a failure."""

    next_replica: bool
    """Whether another replica may succeed where this one did not."""
    budgeted: bool
    """Whether trying it costs a token. Not where the leaf is gone: nobody does that work now."""
    blame: bool
    """Whether the leaf looks worse for it, and hedging rests where it is common: the trouble is
    not slowness."""
    missing: MissingReason
    """What the answer says of the shard, if nothing else answers."""


CONDUCT: Final[dict[FailureReason, Conduct]] = {
    "gone": Conduct(next_replica=True, budgeted=False, blame=False, missing="no_replica"),
    "garbage": Conduct(next_replica=True, budgeted=False, blame=True, missing="error"),
    "error": Conduct(next_replica=True, budgeted=True, blame=True, missing="error"),
    "busy": Conduct(next_replica=True, budgeted=True, blame=False, missing="refused"),
    "unknown_shard": Conduct(next_replica=True, budgeted=True, blame=False, missing="refused"),
    "unknown_generation": Conduct(next_replica=True, budgeted=True, blame=False, missing="refused"),
    "cancelled": Conduct(next_replica=True, budgeted=True, blame=True, missing="error"),
    "expired": Conduct(next_replica=True, budgeted=True, blame=False, missing="timeout"),
    "bad_query": Conduct(next_replica=False, budgeted=False, blame=False, missing="refused"),
}


LOST: Final[tuple[FailureReason, ...]] = ("gone", "garbage")
"""Failures with which the leaf's connection is lost: a leaf that breaks the protocol is dropped."""
