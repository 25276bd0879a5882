"""What a leaf does besides answering: what is opened, what is said of failures, and when."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from leaf.background import ROUND_S, Background, until_next_s
from leaf.errors import BadSetting
from leaf.holdings import HeldGeneration


class ScriptedSupply:
    """Gives in each round what a test has put on its list for it."""

    def __init__(self, *script: Sequence[HeldGeneration | BadSetting] | Exception) -> None:
        self.script = list(script)
        self.asked: list[list[str]] = []

    def changes(
        self, held: Mapping[str, HeldGeneration], /
    ) -> Iterator[HeldGeneration | BadSetting]:
        self.asked.append(sorted(held))
        match self.script.pop(0):
            case Exception() as error:
                raise error
            case found:
                yield from found


class FakeLeaf:
    """Remembers what it was told, in order."""

    def __init__(self) -> None:
        self.generations: dict[str, HeldGeneration] = {}
        self.told: list[str] = []

    def held(self) -> Mapping[str, HeldGeneration]:
        return self.generations

    def hold(self, generation: HeldGeneration) -> None:
        self.generations[generation.card.generation] = generation
        self.told.append(generation.card.generation)

    def let_go(self) -> None:
        self.told.append("let go")

    def fail(self, error: BadSetting) -> None:
        self.told.append(f"fail: {error}")


def ran(supply: ScriptedSupply, *, in_step: bool = False) -> FakeLeaf:
    """As many rounds as there are on the list."""
    leaf = FakeLeaf()
    background = Background(supply, leaf, in_step=in_step)
    while supply.script:
        background.round()
    return leaf


def test_each_round_opens_what_is_new_and_then_lets_go(generation_named: Any) -> None:
    """The supply is told what is held; what it gives is held in its order."""
    g1, g2, g3 = (generation_named(name) for name in ("g1", "g2", "g3"))
    supply = ScriptedSupply([g1, g2], [], [g3])
    leaf = ran(supply)
    assert leaf.told == ["g1", "g2", "let go", "let go", "g3", "let go"]
    assert supply.asked == [[], ["g1", "g2"], ["g1", "g2"]]


def test_generations_are_held_when_all_are_open(generation_named: Any) -> None:
    """A leaf that starts is asked for nothing before it has what others may be asked for."""
    leaf = FakeLeaf()

    class Supply:
        def changes(self, held: Mapping[str, HeldGeneration], /) -> Iterator[HeldGeneration]:
            for name in ("g1", "g2"):
                assert leaf.told == []
                yield generation_named(name)

    Background(Supply(), leaf, in_step=False).round()
    assert leaf.told == ["g1", "g2", "let go"]


def test_a_leaf_without_any_generation_fails() -> None:
    """Whatever opening raises, somebody is told; the thread does not die in silence."""
    leaf = ran(ScriptedSupply([BadSetting("it is damaged")]))
    assert leaf.told[0] == "fail: it is damaged"
    leaf = ran(ScriptedSupply(ValueError("bad magic number")))
    assert leaf.told[0] == "fail: the index cannot be opened: bad magic number"


def test_one_of_two_generations_is_enough_to_start(
    generation_named: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A broken one, older or newer, is told and the other served."""
    for script in (
        [BadSetting("g1 is damaged"), generation_named("g2")],
        [generation_named("g2"), BadSetting("g1 is damaged")],
    ):
        caplog.clear()
        assert ran(ScriptedSupply(script)).told == ["g2", "let go"]
        assert "g1 is damaged" in caplog.text


def test_a_later_failure_is_said_once(
    generation_named: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A broken newer generation leaves the old one serving, and fills no log."""
    broken = BadSetting("g2 is damaged")
    script = ([generation_named("g1")], [broken], [broken], [generation_named("g3")])
    assert ran(ScriptedSupply(*script)).told == ["g1", "let go", "let go", "let go", "g3", "let go"]
    assert caplog.text.count("g2 is damaged") == 1


class Cycle:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.myself = self


@pytest.mark.parametrize("in_step", [True, False])
def test_in_step_a_round_collects_garbage(in_step: bool) -> None:
    """And free it leaves that to the collector, whenever that comes."""
    gc.disable()
    try:
        garbage = weakref.ref(Cycle())
        ran(ScriptedSupply([]), in_step=in_step)
        assert (garbage() is None) == in_step
    finally:
        gc.enable()


def test_moments_in_step_are_those_of_every_leaf() -> None:
    """Whenever a leaf looks at its clock, its next round is at the same times of day as all
    others', and never closer than half a period.
    """
    for now_s in (1000.0, 1000.001, 1000.3, 1000.499, 1000.7, 1000.999):
        wait_s = until_next_s(now_s, 1.0)
        assert (now_s + wait_s) % 1.0 == pytest.approx(0.0, abs=1e-9)
        assert 0.5 <= wait_s <= 1.5 + 1e-9
    assert until_next_s(1000.2, 1.0) == pytest.approx(0.8)
    assert until_next_s(999.9999, 1.0) == pytest.approx(1.0001)


def test_rounds_are_in_step_with_the_time_of_day_or_free_of_it() -> None:
    """Two leaves that started at different times meet; free, each keeps to its own interval."""
    supply = ScriptedSupply()
    for in_step, expected in ((True, [0.75, 0.6]), (False, [ROUND_S, ROUND_S])):
        wall = iter([50.25, 50.4]).__next__
        background = Background(supply, FakeLeaf(), in_step=in_step, wall=wall)
        assert [background.pause_s, background.pause_s] == pytest.approx(expected)
