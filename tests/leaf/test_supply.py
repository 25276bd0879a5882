"""What a leaf opens: the newest generations, as their placement has them now."""

from __future__ import annotations

import gc
import json
import shutil
import weakref
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from index_data.build import build
from index_data.manifest import STATISTICS_FILE, Field, generations, shard_folder
from index_data.placement_file import PLACEMENT_FILE, PlacementFile, write_placement
from index_data.sources import BadLine, Collection, Document
from leaf.config import Place
from leaf.errors import BadSetting
from leaf.holdings import HeldGeneration
from leaf.protocol import All
from leaf.shard import Generation
from leaf.supply import IndexSupply, Supplies

PLACE = Place(ordinal=0, leaves=4, replicas=2)
BY_THE_RULE = PLACE.shards(8)
"""Of eight shards, those that leaf 0 of 4 holds."""

OTHER = next(shard for shard in range(8) if shard not in BY_THE_RULE)
MINE = BY_THE_RULE[0]


def documents() -> Iterator[Document | BadLine]:
    for number in range(24):
        yield Document(f"d{number:02d}", {"body": f"word{number} all"}, f"record {number}")


@pytest.fixture(scope="module", name="built")
def built_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of three generations with eight shards each."""
    index = tmp_path_factory.mktemp("built") / "index"
    collection = Collection("made", "words", (Field("body", "text"),), documents)
    for day in (1, 2, 3):
        built_at = datetime(2026, 1, day, tzinfo=UTC)
        build(collection, index, 8, now=lambda built_at=built_at: built_at)  # type: ignore[misc]
    return index


@pytest.fixture(name="index")
def index_fixture(built: Path, tmp_path: Path) -> Path:
    """A copy of it to change."""
    return Path(shutil.copytree(built, tmp_path / "index"))


def choose(index: Path, chosen: Mapping[int, tuple[int, ...]], *, leaves: int = 4) -> None:
    """Write a placement of the newest generation."""
    name = generations(index)[-1]
    write_placement(index / name, PlacementFile(1, name, leaves, 2, dict(chosen)))


def changes(supply: IndexSupply | Supplies, held: dict[str, HeldGeneration]) -> list[Generation]:
    """One round: what is opened becomes what is held."""
    found = list(supply.changes(held))
    for generation in found:
        assert isinstance(generation, Generation), generation
        held[generation.card.generation] = generation
    return [generation for generation in found if isinstance(generation, Generation)]


def test_a_leaf_that_starts_opens_the_newest_two(index: Path) -> None:
    """Oldest first; as many as it is told to, and no more than there are."""
    names = generations(index)
    for newest, expected in ((2, names[1:]), (1, names[2:]), (9, names)):
        held: dict[str, HeldGeneration] = {}
        supply = IndexSupply(index, PLACE, newest)
        supply.check()
        assert [g.card.generation for g in changes(supply, held)] == expected
        assert all(tuple(g.shards) == BY_THE_RULE for g in held.values())
        assert changes(supply, held) == []


def test_later_only_what_is_newer_is_opened(index: Path) -> None:
    """What a leaf has let go of does not come back, whatever lies on the disk."""
    names = generations(index)
    newest = index / names[2]
    newest.rename(index / "beside")
    held: dict[str, HeldGeneration] = {}
    supply = IndexSupply(index, PLACE)
    assert [g.card.generation for g in changes(supply, held)] == names[:2]
    del held[names[0]]
    assert changes(supply, held) == []
    (index / "beside").rename(newest)
    assert [g.card.generation for g in changes(supply, held)] == names[2:]


def test_one_generation_that_is_damaged_leaves_the_other(index: Path) -> None:
    """It is said which, and the rest is opened."""
    names = generations(index)
    (index / names[1] / STATISTICS_FILE).write_bytes(b"x")
    problem, opened = IndexSupply(index, PLACE).changes({})
    assert isinstance(problem, BadSetting)
    assert f"{names[1]} cannot be opened" in str(problem)
    assert isinstance(opened, Generation)
    assert opened.card.generation == names[2]


def test_a_chosen_shard_is_opened_beside_what_is_open(index: Path) -> None:
    """The others are not opened again, and what a query has begun with stays as it was."""
    held: dict[str, HeldGeneration] = {}
    supply = IndexSupply(index, PLACE, 1)
    (before,) = changes(supply, held)
    choose(index, {OTHER: (1, 2, 0)})
    (after,) = changes(supply, held)
    assert tuple(sorted(after.shards)) == tuple(sorted((*BY_THE_RULE, OTHER)))
    assert all(after.shards[shard] is before.shards[shard] for shard in BY_THE_RULE)
    assert OTHER not in before.shards
    assert after.leaving == {}
    total, _, _ = after.shards[OTHER].search(after.prepare(All()), 10)
    assert total == after.card.documents[OTHER]
    assert changes(supply, held) == []


def test_a_shard_that_is_placed_elsewhere_is_served_on_and_said_to_be_leaving(index: Path) -> None:
    """With the number of leaves that are to hold it; a placement that goes takes that back."""
    held: dict[str, HeldGeneration] = {}
    supply = IndexSupply(index, PLACE, 1)
    changes(supply, held)
    choose(index, {MINE: (2, 3, 1)})
    (moved,) = changes(supply, held)
    assert MINE in moved.shards
    assert moved.leaving == {MINE: 3}
    lighter = moved.without([MINE])
    assert MINE not in lighter.shards
    assert lighter.leaving == {}
    held[lighter.card.generation] = lighter
    assert changes(supply, held) == []
    (index / generations(index)[-1] / PLACEMENT_FILE).unlink()
    (back,) = changes(supply, held)
    assert tuple(sorted(back.shards)) == BY_THE_RULE


def test_a_chosen_shard_that_is_damaged_is_refused_once(index: Path) -> None:
    """As at the start: the rest is served, and it is not read again in every round."""
    held: dict[str, HeldGeneration] = {}
    supply = IndexSupply(index, PLACE, 1)
    changes(supply, held)
    folder = index / generations(index)[-1] / shard_folder(OTHER)
    next(file for file in folder.iterdir() if file.is_file()).write_bytes(b"x")
    choose(index, {OTHER: (1, 2, 0)})
    (after,) = changes(supply, held)
    assert list(after.refused) == [OTHER]
    assert changes(supply, held) == []


def test_a_leaf_that_starts_goes_by_the_placement(index: Path) -> None:
    """It opens what was chosen for it, and not what was given to others."""
    choose(index, {OTHER: (0, 1), MINE: (2, 3)})
    (generation,) = IndexSupply(index, PLACE, 1).changes({})
    assert isinstance(generation, Generation)
    assert set(generation.shards) == {*BY_THE_RULE, OTHER} - {MINE}


def test_a_placement_for_another_fleet_is_said_and_left(
    index: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes by the rule, which every leaf of its fleet does."""
    choose(index, {OTHER: (0, 1)}, leaves=5)
    held: dict[str, HeldGeneration] = {}
    supply = IndexSupply(index, PLACE, 1)
    (generation,) = changes(supply, held)
    assert tuple(generation.shards) == BY_THE_RULE
    changes(supply, held)
    assert caplog.text.count("is for 5 leaves x 2") == 1


def test_a_broken_placement_stops_a_start_and_disturbs_nobody_who_serves(index: Path) -> None:
    """One sentence names the member that is wrong."""
    held: dict[str, HeldGeneration] = {}
    supply = IndexSupply(index, PLACE, 1)
    (generation,) = changes(supply, held)
    path = index / generations(index)[-1] / PLACEMENT_FILE
    choose(index, {OTHER: (0, 1)})
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chosen": {"99": [0, 1]}}))
    (problem,) = supply.changes(held)
    assert "no shard 99" in str(problem)
    assert held == {generation.card.generation: generation}
    with pytest.raises(BadSetting, match="no shard 99"):
        IndexSupply(index, PLACE, 1).check()


def test_an_index_that_is_gone_is_said(index: Path) -> None:
    """What is open is served on."""
    held: dict[str, HeldGeneration] = {}
    supply = IndexSupply(index, PLACE, 1)
    changes(supply, held)
    shutil.rmtree(index)
    (problem,) = supply.changes(held)
    assert "There is no index" in str(problem)


def test_what_is_let_go_is_freed_at_once(index: Path) -> None:
    """Without a collector, which does not look at what was frozen when it was opened."""
    (generation,) = IndexSupply(index, PLACE, 1).changes({})
    assert isinstance(generation, Generation)
    generation.prepare(All())
    shard = weakref.ref(generation.shards[MINE])
    gc.disable()
    try:
        generation = generation.without([MINE])
        assert shard() is None
        kept = weakref.ref(generation.shards[BY_THE_RULE[1]])
        del generation
        assert kept() is None
    finally:
        gc.enable()


def whole_in_a_rolling_restart(index: Path, newest: int) -> list[bool]:
    """Whether some generation is whole while each leaf of four is away in turn, where no leaf
    that runs has opened the newest yet, and every leaf that was restarted did as it does.
    """
    names = generations(index)
    running = {
        ordinal: {names[1]: frozenset(Place(ordinal=ordinal, leaves=4, replicas=2).shards(8))}
        for ordinal in range(4)
    }
    whole = []
    for away in range(4):
        del running[away]
        covered = [
            set().union(*(held.get(name, frozenset()) for held in running.values()))
            for name in names
        ]
        whole.append(set(range(8)) in covered)
        place = Place(ordinal=away, leaves=4, replicas=2)
        held: dict[str, HeldGeneration] = {}
        changes(IndexSupply(index, place, newest), held)
        running[away] = {name: frozenset(generation.shards) for name, generation in held.items()}
    return whole


def test_a_rolling_restart_right_after_a_build_leaves_a_generation_whole(index: Path) -> None:
    """A leaf that comes back has the one that all others still have; with the newest alone, two
    leaves restarted one after the other would leave neither whole.
    """
    assert whole_in_a_rolling_restart(index, 2) == [True] * 4
    assert not all(whole_in_a_rolling_restart(index, 1))


def supplies(**directories: Path) -> Supplies:
    """Supplies of some collections."""
    return Supplies([IndexSupply(path, PLACE, 2, name) for name, path in directories.items()])


def test_every_collection_is_opened_and_follows_its_own_folder(index: Path, tmp_path: Path) -> None:
    """In their order; what is built of one later is opened of that one alone."""
    other = tmp_path / "other"
    collection = Collection("made", "words", (Field("text", "text"),), documents)
    build(collection, other, 2, now=lambda: datetime(2026, 2, 1, tzinfo=UTC))
    both = supplies(docs=index, articles=other)
    both.check()
    held: dict[str, HeldGeneration] = {}
    opened = changes(both, held)
    assert [(g.collection, g.card.generation) for g in opened] == [
        *(("docs", name) for name in generations(index)[1:]),
        *(("articles", name) for name in generations(other)),
    ]
    assert changes(both, held) == []
    collection = Collection("made", "words", (Field("body", "text"),), documents)
    build(collection, index, 8, now=lambda: datetime(2026, 1, 4, tzinfo=UTC))
    assert [(g.collection, g.card.generation) for g in changes(both, held)] == [
        ("docs", generations(index)[-1])
    ]


def test_a_generation_is_of_one_collection_only(index: Path, tmp_path: Path) -> None:
    """A copy of a folder under another name is not opened, and it is said why."""
    copy = Path(shutil.copytree(index, tmp_path / "copy"))
    newest = generations(index)[-1]
    found = list(supplies(docs=index, copied=copy).changes({}))
    assert [one.collection for one in found if isinstance(one, Generation)] == ["docs"] * 2
    problems = [str(one) for one in found if isinstance(one, BadSetting)]
    assert f"{newest} of copied is one of docs already" in problems


def test_every_folder_is_looked_at_before_the_start(index: Path, tmp_path: Path) -> None:
    """One that holds no index keeps the leaf from starting."""
    with pytest.raises(BadSetting, match="empty"):
        supplies(docs=index, articles=tmp_path / "empty").check()
