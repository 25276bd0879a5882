"""The keeper's decisions: what to run, when to run it again, when to give up."""

from __future__ import annotations

import signal
import sys

import pytest

from leaf.errors import BadSetting
from leaf.keeper import PAUSE_S, PAUSE_S_MAX, SETTLED_S, Keeper, Pauses, Settings, fate


def test_the_fleet_is_described_by_the_environment() -> None:
    """Leaf I listens on the base port plus I; what is not set has the demonstration's value."""
    command = Settings.read({}).command(3)
    assert command[:3] == [sys.executable, "-m", "leaf"]
    assert command[3:] == [
        *("--index", "index_data/shards", "--ordinal", "3", "--of", "4"),
        *("--replicas", "2", "--port", "8084"),
    ]
    environment = {
        "HEDGEROW_INDEX": "docs=/data,more=/more",
        "HEDGEROW_LEAVES": "9",
        "HEDGEROW_REPLICAS": "3",
        "HEDGEROW_LEAF_PORT": "7000",
    }
    assert Settings.read(environment) == Settings(("docs=/data", "more=/more"), 9, 3, 7000)


def test_a_number_that_is_none_is_named() -> None:
    """One sentence names the variable."""
    with pytest.raises(BadSetting, match="HEDGEROW_LEAVES must be a whole number, not 'many'"):
        Settings.read({"HEDGEROW_LEAVES": "many"})


def test_pauses_grow_while_a_leaf_dies_young() -> None:
    """They double up to a bound, and start anew after a life that was long enough."""
    pauses = Pauses()
    young = [pauses.after(lived_s=0.1) for _ in range(8)]
    assert young[:3] == [PAUSE_S, 2 * PAUSE_S, 4 * PAUSE_S]
    assert young[-1] == PAUSE_S_MAX
    assert pauses.after(lived_s=SETTLED_S) == PAUSE_S


@pytest.mark.parametrize(
    ("returncode", "words"),
    [
        (0, "ended with code 0"),
        (3, "ended with code 3"),
        (-signal.SIGKILL, "was ended by SIGKILL"),
        (-120, "was ended by signal 120"),
    ],
)
def test_an_end_is_told_in_words(returncode: int, words: str) -> None:
    """The operator reads the name of the signal, not a negative number."""
    assert fate(returncode) == words


def test_bad_input_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leaf that ends with code 2 would do so again: the keeper ends with the same code."""
    returncodes = [-signal.SIGKILL, 1, 2]
    paused: list[int] = []
    keeper = Keeper(0, ["leaf"])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(keeper, "_run_once", lambda: returncodes.pop(0))
    monkeypatch.setattr(keeper, "_pause", lambda returncode, _: paused.append(returncode))
    assert keeper.run() == 2
    assert paused == [-signal.SIGKILL, 1]


def test_a_keeper_that_is_ended_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a signal nothing is started again, however the leaf ended."""
    keeper = Keeper(0, ["leaf"])

    def leaf_is_terminated() -> int:
        keeper.end()
        return -signal.SIGTERM

    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(keeper, "_run_once", leaf_is_terminated)
    assert keeper.run() == 0
