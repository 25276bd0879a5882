"""The tree of errors: who must act, and what HTTP says."""

from __future__ import annotations

import pytest

from root import errors
from root.errors import (
    BadRequest,
    BodyTooLarge,
    CallerError,
    FleetError,
    HedgerowError,
    NoShards,
    NotCovered,
    OperatorError,
    Overloaded,
    Quarantined,
    UnknownDocument,
)


@pytest.mark.parametrize(
    ("kind", "status"),
    [(CallerError, 400), (BadRequest, 400), (BodyTooLarge, 413), (UnknownDocument, 404)],
)
def test_an_error_of_the_caller_names_the_field(kind: type[CallerError], status: int) -> None:
    """Field and sentence apart for the answer, together for a log."""
    error = kind("k", "must be a number")
    assert (error.status, error.field, error.detail) == (status, "k", "must be a number")
    assert str(error) == "k: must be a number"
    assert error.title


@pytest.mark.parametrize(("kind", "status"), [(NoShards, 503), (NotCovered, 504)])
def test_an_error_of_the_fleet_carries_what_there_is(kind: type[FleetError], status: int) -> None:
    """A partial body, or none."""
    error = kind("too late", {"hits": []})
    assert (error.status, error.detail, error.partial) == (status, "too late", {"hits": []})
    assert kind("too late").partial is None
    assert str(error) == "too late"
    assert error.title


def test_overload_says_when_to_try_again() -> None:
    """In whole seconds, as Retry-After has it."""
    error = Overloaded("busy", 2)
    assert (error.status, error.retry_after_s, error.partial) == (429, 2, None)


def test_a_quarantine_says_when_it_is_over() -> None:
    """The caller's error all the same: another query would be answered."""
    error = Quarantined("q", "refused", 4)
    assert isinstance(error, CallerError)
    assert (error.status, error.field, error.retry_after_s) == (422, "q", 4)


def test_every_error_is_of_one_who_must_act() -> None:
    """The caller, the operator or whoever runs the fleet: there is no other branch."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    leaves = [kind for kind in kinds if issubclass(kind, HedgerowError)]
    assert len(leaves) >= 10
    assert all(
        kind is HedgerowError or issubclass(kind, CallerError | FleetError | OperatorError)
        for kind in leaves
    )
