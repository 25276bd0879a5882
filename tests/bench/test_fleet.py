"""Starting and ending real processes: what needs no index."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.fleet import FleetError, Shape, answers, free_ports, running


def test_free_ports_are_different_ports() -> None:
    """No port is handed out twice."""
    assert len(set(free_ports(20))) == 20


def test_nothing_answers_where_nothing_listens() -> None:
    """A refused connection is no answer and no error."""
    assert not answers(f"http://127.0.0.1:{free_ports(1)[0]}/readyz")


@pytest.mark.parametrize(("leaves", "replicas"), [(0, 1), (2, 3), (2, 0)])
def test_an_impossible_shape_is_refused(leaves: int, replicas: int, tmp_path: Path) -> None:
    """There are at least one replica and at most as many as leaves."""
    with pytest.raises(ValueError, match="replicas"):
        Shape(tmp_path, leaves=leaves, replicas=replicas)


@pytest.mark.live
def test_a_fleet_that_cannot_start_says_why(tmp_path: Path) -> None:
    """What the process that ended has said is in the error."""
    with (
        pytest.raises(FleetError, match="has ended"),
        running(Shape(tmp_path, leaves=1, replicas=1)),
    ):
        pass
