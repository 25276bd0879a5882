"""The leaf's upkeep, and the thread that looks for newer generations."""

from __future__ import annotations

from typing import Any

import pytest

from leaf.errors import BadSetting
from leaf.holdings import HeldGeneration
from leaf.service import Watch


class ScriptedSupply:
    """Gives or raises what a test has put on its list, and remembers what it was asked."""

    def __init__(self, *script: HeldGeneration | Exception | None) -> None:
        self.script = list(script)
        self.asked: list[str | None] = []

    def newer(self, than: str | None, /) -> HeldGeneration | None:
        self.asked.append(than)
        match self.script.pop(0):
            case Exception() as error:
                raise error
            case generation:
                return generation


def watched(supply: ScriptedSupply) -> tuple[Watch, list[str], list[str]]:
    held: list[str] = []
    failed: list[str] = []
    watch = Watch(
        supply,
        hold=lambda generation: held.append(generation.card.generation),
        fail=lambda error: failed.append(str(error)),
    )
    return watch, held, failed


def test_each_newer_generation_is_held(generation_named: Any) -> None:
    """The supply is asked for what is newer than the newest that was given."""
    supply = ScriptedSupply(generation_named("g1"), None, generation_named("g2"))
    watch, held, failed = watched(supply)
    for _ in range(3):
        watch.look()
    assert (held, failed) == (["g1", "g2"], [])
    assert supply.asked == [None, "g1", "g1"]


def test_a_leaf_without_any_generation_fails() -> None:
    """Without its first generation a leaf is of no use."""
    watch, held, failed = watched(ScriptedSupply(BadSetting("it is damaged")))
    watch.look()
    assert (held, failed) == ([], ["it is damaged"])


def test_an_index_that_fails_in_an_unforeseen_way_is_a_failure_too() -> None:
    """Whatever opening raises, somebody is told; the thread does not die in silence."""
    watch, held, failed = watched(ScriptedSupply(ValueError("bad magic number")))
    watch.look()
    assert (held, failed) == ([], ["the index cannot be opened: bad magic number"])


def test_a_later_failure_is_said_once(
    generation_named: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A broken newer generation leaves the old one serving, and fills no log."""
    broken = BadSetting("g2 is damaged")
    supply = ScriptedSupply(generation_named("g1"), broken, broken, generation_named("g3"))
    watch, held, failed = watched(supply)
    for _ in range(4):
        watch.look()
    assert (held, failed) == (["g1", "g3"], [])
    assert caplog.text.count("g2 is damaged") == 1
