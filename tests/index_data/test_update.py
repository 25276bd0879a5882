"""An update is what a build of the same documents would be."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from index_data.build import BadLineFound, BuildRefused, build
from index_data.files import file_collection
from index_data.manifest import (
    MANIFEST_FILE,
    Damaged,
    Field,
    Manifest,
    NoIndex,
    Source,
    generations,
    latest_generation,
    read_manifest,
)
from index_data.oracle import Oracle, words
from index_data.sources import BadSource, Collection, Document
from index_data.update import Updated, UpdateRefused, read_ids, update

FIELDS = (
    Field("title", "text", weight=2.0),
    Field("texts", "text", multiple=True),
    Field("year", "integer"),
    Field("rate", "float"),
    Field("day", "date"),
    Field("ok", "boolean"),
    Field("tags", "keyword", default=False, multiple=True),
)


def document(number: int, words: str = "") -> Document:
    """A document of every type, of several values and none, and members that are no field."""
    source = {
        "id": f"d{number:03d}",
        "title": f"number {number} {words}",
        "texts": [words, "Ünï 東京"] if number % 2 else None,
        "year": 2**63 - 1 - number,
        "rate": -0.0 if number % 3 else 1e300,
        "day": f"20{number % 100:02d}-01-31T23:59:59.5+02:00",
        "ok": None if number % 5 == 0 else number % 2 == 0,
        "tags": ["a", 2**64 - 1, "a"][: number % 4],
        "more": {"nested": [1, {"x": None}], "big": 2**64 - 1},
    }
    return Document(f"d{number:03d}", source, f"record {number}")


def made(documents: list[Document]) -> Collection:
    """A collection of these."""

    def read() -> Iterator[Document]:
        yield from documents

    return Collection("made", "made", FIELDS, read)


def lines(path: Path, *documents: Document) -> Callable[[Manifest], Collection]:
    """A source of a file with these documents."""
    path.write_text("".join(json.dumps(d.source) + "\n" for d in documents))
    return lambda manifest: file_collection(path, "id", manifest.fields)


OLD = [document(i, "old words") for i in range(40)]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index of forty documents in three shards."""
    build(made(OLD), tmp_path / "index", 3)
    return tmp_path / "index"


def assert_same(updated: Updated, fresh: Path) -> None:
    """Every file is that of a fresh build, and so is the manifest but for its history."""
    folder, other = updated.built.folder, latest_generation(fresh)
    one, two = read_manifest(folder), read_manifest(other)
    nothing = Source("", "")
    assert msgspec.structs.replace(one, generation="", source=nothing) == msgspec.structs.replace(
        two, generation="", source=nothing
    )
    names = {file.relative_to(folder) for file in folder.rglob("*") if file.is_file()}
    assert names == {file.relative_to(other) for file in other.rglob("*") if file.is_file()}
    for name in names - {Path(MANIFEST_FILE)}:
        assert (folder / name).read_bytes() == (other / name).read_bytes(), name


def test_an_update_is_a_build_of_the_same_documents(index: Path, tmp_path: Path) -> None:
    """Replaced, added and deleted: the bytes of shards and statistics are those of a build."""
    new = [document(i, "new text") for i in (3, 39, 41, 42)]
    updated = update(index, lines(tmp_path / "new.jsonl", *new), ["d000", "d007"])
    assert (updated.replaced, updated.added, updated.deleted) == (2, 2, 2)
    assert updated.missing == ()
    kept = [d for i, d in enumerate(OLD) if i not in {0, 3, 7, 39}]
    build(made([*kept, *new]), tmp_path / "fresh", 3)
    assert_same(updated, tmp_path / "fresh")
    assert updated.built.manifest.source == Source("made", "made", updates=1)
    total, hits = Oracle.open(updated.built.folder).search(words("new"), 10)
    assert total == 4
    assert {identity for identity, _ in hits} == {"d003", "d039", "d041", "d042"}


def test_updates_follow_one_another(index: Path, tmp_path: Path) -> None:
    """Each starts from the newest; what was deleted may come again; all generations are there."""
    update(index, None, ["d001", "d002"])
    updated = update(index, lines(tmp_path / "one.jsonl", OLD[1]))
    assert (updated.replaced, updated.added, updated.deleted) == (0, 1, 0)
    build(made([d for d in OLD if d.id != "d002"]), tmp_path / "fresh", 3)
    assert_same(updated, tmp_path / "fresh")
    assert updated.built.manifest.source.updates == 2
    assert len(generations(index)) == 3
    assert read_manifest(index / generations(index)[0]).documents == 40


def test_the_number_of_shards_may_change(index: Path, tmp_path: Path) -> None:
    """More documents may need more shards."""
    updated = update(index, None, ["d001"], shards=5)
    build(made([d for d in OLD if d.id != "d001"]), tmp_path / "fresh", 5)
    assert_same(updated, tmp_path / "fresh")


def test_what_was_left_out_of_the_build_is_not_forgotten(tmp_path: Path) -> None:
    """The counts of bad lines are those of the build, as the documents are."""
    path = tmp_path / "some.jsonl"
    path.write_text('{"isbn": "a", "t": "x y"}\n{\n{"isbn": "b", "t": "z"}\n')
    fields = (Field("t", "text"),)
    build(file_collection(path, "isbn", fields), tmp_path / "index", 1)
    source = update(tmp_path / "index", None, ["a"]).built.manifest.source
    assert source == Source("jsonl", "some.jsonl", {"bad JSON": 1}, "isbn", 1)


def test_ids_that_are_not_there_are_told_or_refused(index: Path) -> None:
    """They are counted; strict leaves everything as it was."""
    updated = update(index, None, ["d001", "nobody", "d1"])
    assert updated.missing == ("d1", "nobody")
    assert updated.deleted == 1
    before = sorted(index.iterdir())
    with pytest.raises(UpdateRefused, match="1 of the ids to delete are not there: 'd001'"):
        update(index, None, ["d001", "d002"], strict=True)
    assert sorted(index.iterdir()) == before


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ('{"id": "d001", "year": "soon"}', "line 2: wrong type: 'year' is not an integer.*'soon'"),
        ('{"id": "x"', "line 2: bad JSON: .* at column 11"),
        ('{"id": "new"}', "line 2: duplicate id: new"),
        ('{"id": "d009"}', "line 2: the document 'd009' is to be deleted as well"),
    ],
)
def test_a_source_that_does_not_fit_changes_nothing(
    index: Path, tmp_path: Path, bad: str, says: str
) -> None:
    """Refused with line, field and value; nothing is left behind."""
    path = tmp_path / "new.jsonl"
    path.write_text('{"id": "new"}\n' + bad + "\n")
    before = sorted(index.iterdir())
    with pytest.raises((BadLineFound, UpdateRefused), match=says):
        update(index, lambda manifest: file_collection(path, "id", manifest.fields), ["d009"])
    assert sorted(index.iterdir()) == before


def test_what_cannot_be_is_refused(index: Path, tmp_path: Path) -> None:
    """Nothing to do, nothing left, too few documents, no index: a sentence each."""
    with pytest.raises(UpdateRefused, match="Nothing is to be changed"):
        update(index, None)
    with pytest.raises(UpdateRefused, match="No document would be left"):
        update(index, None, [d.id for d in OLD])
    with pytest.raises(BuildRefused, match="3 shards need more documents than 1"):
        update(index, None, [d.id for d in OLD[1:]])
    with pytest.raises(NoIndex):
        update(tmp_path / "nowhere", None, ["a"])
    assert len(generations(index)) == 1
    assert not (tmp_path / "nowhere").exists()


def test_a_damaged_generation_is_not_carried_on(index: Path) -> None:
    """Its bytes are checked before they are read."""
    victim = next((latest_generation(index) / "shard-00001").glob("*.store"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"!")
    with pytest.raises(Damaged, match="wrong checksum"):
        update(index, None, ["d001"])


def test_what_was_built_meanwhile_is_not_lost(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update whose generation is the newest no more is refused."""
    # Two processes have two numbers, and what they write does not collide.
    numbers = iter([os.getppid()])
    own = os.getpid()
    monkeypatch.setattr("index_data.build.os.getpid", lambda: next(numbers, own))

    def meanwhile(phase: str, done: int, of: int | None) -> None:
        if phase == "dealing":
            build(made(OLD[:9]), index, 1)

    with pytest.raises(BuildRefused, match=r"is the newest generation now.*do it once more"):
        update(index, None, ["d001"], progress=meanwhile)
    assert [read_manifest(index / name).documents for name in generations(index)] == [40, 9]


def test_ids_are_read_from_lines(tmp_path: Path) -> None:
    """Line ends of any kind, blank lines skipped; spaces belong to an id."""
    path = tmp_path / "ids.txt"
    path.write_bytes(b"a\r\n\nb c\n\xe6\x9d\xb1")
    assert list(read_ids(path)) == ["a", "b c", "東"]


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"a\n\xff\n", "line 2: an id is UTF-8"), (b"x" * 5000 + b"\na\n", "line 1: .* 512 bytes")],
)
def test_what_is_no_id_is_named_by_its_line(tmp_path: Path, content: bytes, says: str) -> None:
    """One sentence with the line."""
    path = tmp_path / "ids.txt"
    path.write_bytes(content)
    with pytest.raises(BadSource, match=says):
        list(read_ids(path))
    with pytest.raises(BadSource, match="nowhere"):
        list(read_ids(tmp_path / "nowhere"))
