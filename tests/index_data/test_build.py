"""A build is reproducible, all or nothing, and leaves older generations alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from index_data import build as builder
from index_data import segment
from index_data.analysis import text_analyser
from index_data.build import BadLineFound, BuildRefused, build
from index_data.manifest import (
    BUILDING_PREFIX,
    MANIFEST_FILE,
    Field,
    HalfBuilt,
    Manifest,
    generations,
    latest_generation,
    read_manifest,
    shard_folder,
    verify_shard,
)
from index_data.segment import TooLarge, open_segment, ordinals_of, rows_of
from index_data.sources import BadLine, Collection, Document, fields_of, jsonl
from index_data.statistics import Statistics


def at(hour: int) -> Callable[[], datetime]:
    """A clock that always shows this hour."""
    return lambda: datetime(2026, 11, 30, hour, tzinfo=UTC)


def nameless(manifest: Manifest) -> Manifest:
    """A manifest apart from its generation."""
    return msgspec.structs.replace(manifest, generation="")


def test_equal_input_gives_equal_bytes(docstrings: Collection, tmp_path: Path) -> None:
    """Two builds differ in the time of their names only: files, checksums and manifests agree."""
    first = build(docstrings, tmp_path / "a", 4, now=at(1))
    second = build(docstrings, tmp_path / "b", 4, now=at(2))
    assert nameless(first.manifest) == nameless(second.manifest)
    assert first.folder.name != second.folder.name
    assert first.folder.name[-4:] == second.folder.name[-4:]
    for file in (file for file in first.folder.rglob("*") if file.is_file()):
        twin = second.folder / file.relative_to(first.folder)
        if file.name != MANIFEST_FILE:
            assert file.read_bytes() == twin.read_bytes()


def test_every_document_is_in_one_shard_in_the_order_of_ids(
    collection: Collection, tmp_path: Path
) -> None:
    """Ordinals are ranks of ids over all shards, and ascend with a shard's document numbers."""
    built = build(collection, tmp_path, 3)
    ids: dict[int, str] = {}
    for shard in range(3):
        folder = built.folder / shard_folder(shard)
        verify_shard(built.folder, shard, built.manifest.shards[shard])
        ordinals = list(ordinals_of(open_segment(folder)))
        assert ordinals == sorted(ordinals)
        ids |= {ordinal: identity for ordinal, identity, _ in rows_of(folder)}
    assert [ids[ordinal] for ordinal in range(40)] == [f"doc-{i:02d}" for i in range(40)]
    assert read_manifest(built.folder) == built.manifest
    assert {file.name for file in tmp_path.iterdir()} == {built.folder.name}


def test_statistics_are_those_of_all_documents(collection: Collection, tmp_path: Path) -> None:
    """Frequencies and token counts equal those counted one by one over the source."""
    built = build(collection, tmp_path, 3)
    statistics = Statistics(built.folder / "statistics.bin")
    analyse = text_analyser(Field("body", "text")).analyze
    bodies = [analyse(x.source["body"]) for x in collection.read() if isinstance(x, Document)]
    assert statistics.documents == len(bodies) == built.manifest.documents
    assert statistics.tokens("body") == sum(map(len, bodies))
    for token in set().union(*bodies):
        assert statistics.frequency("body", token) == sum(token in body for body in bodies)
    assert statistics.frequency("kind", "even") == 20
    assert statistics.tokens("kind") == 40


def test_names_sort_after_older_generations_even_if_the_clock_goes_back(
    collection: Collection, tmp_path: Path
) -> None:
    """The newest build is the latest generation, whatever the clock says; the older stays."""
    first = build(collection, tmp_path, 2, now=at(5))
    second = build(collection, tmp_path, 2, now=at(4))
    third = build(collection, tmp_path, 2, now=at(4))
    names = [built.folder.name for built in (first, second, third)]
    assert names == sorted(set(names)) == generations(tmp_path)
    assert latest_generation(tmp_path) == third.folder


class Interrupted(BaseException):
    """Stands for anything that ends a build: Ctrl-C, a full disk, a bug."""


@pytest.mark.parametrize("phase", ["reading", "dealing", "writing shards"])
def test_a_build_that_fails_leaves_nothing_and_the_old_one_serving(
    collection: Collection, tmp_path: Path, phase: str
) -> None:
    """Whenever a build fails, the directory is as it was before."""

    def fail(at: str, done: int, of: int | None) -> None:
        if at == phase:
            raise Interrupted

    old = build(collection, tmp_path, 2)
    with pytest.raises(Interrupted):
        build(collection, tmp_path, 2, progress=fail)
    assert [entry.name for entry in tmp_path.iterdir()] == [old.folder.name]
    with pytest.raises(Interrupted):
        build(collection, tmp_path / "new", 2, progress=fail)
    assert not (tmp_path / "new").exists()


def test_a_build_that_cannot_be_renamed_leaves_the_old_one_serving(
    collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last step fails like any other."""

    def fail(building: Path, folder: Path) -> None:
        raise OSError(28, "No space left on device")

    old = build(collection, tmp_path, 2)
    monkeypatch.setattr(builder, "_publish", fail)
    with pytest.raises(OSError, match="No space"):
        build(collection, tmp_path, 2)
    assert [entry.name for entry in tmp_path.iterdir()] == [old.folder.name]


def a_dead_process() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_what_a_killed_build_left_is_half_built_and_removed_by_the_next(
    collection: Collection, tmp_path: Path
) -> None:
    """Leftovers of dead builds go; a folder of a build that runs stays."""
    dead, alive = (tmp_path / f"{BUILDING_PREFIX}{pid}" for pid in (a_dead_process(), os.getppid()))
    dead.mkdir()
    (dead / "spool").write_text("half")
    with pytest.raises(HalfBuilt):
        latest_generation(tmp_path)
    alive.mkdir()
    built = build(collection, tmp_path, 2)
    assert not dead.exists()
    assert alive.exists()
    assert latest_generation(tmp_path) == built.folder


@pytest.mark.parametrize("shards", [0, -1, 41, 10**9])
def test_impossible_numbers_of_shards_are_refused(
    collection: Collection, tmp_path: Path, shards: int
) -> None:
    """Less than one shard, or more than documents, is one sentence and leaves nothing."""
    with pytest.raises(BuildRefused, match="shards"):
        build(collection, tmp_path / "new", shards)
    assert not (tmp_path / "new").exists()


def test_as_many_shards_as_documents_is_possible(collection: Collection, tmp_path: Path) -> None:
    """Every shard may hold one document."""
    assert [s.documents for s in build(collection, tmp_path, 40).manifest.shards] == [1] * 40


def with_bad_lines(collection: Collection, found: list[Document | BadLine]) -> Collection:
    """A collection that yields something else first."""

    def read() -> Iterator[Document | BadLine]:
        yield from found
        yield from collection.read()

    return msgspec.structs.replace(collection, read=read)


def test_bad_lines_are_all_counted_and_the_first_kept(
    collection: Collection, tmp_path: Path
) -> None:
    """Counts are exact by reason; only so many are kept; a second id of a kind is bad."""
    bad: list[Document | BadLine] = [BadLine(f"line {i}", "bad JSON") for i in range(30)]
    twin = Document("doc-00", {"title": "twin"}, "line 31")
    built = build(with_bad_lines(collection, [*bad, twin, twin]), tmp_path, 2)
    assert built.manifest.source.bad == {"bad JSON": 30, "duplicate id": 2}
    assert built.manifest.documents == 40
    assert built.bad_lines == tuple(bad[:20])


def test_a_strict_build_stops_at_the_first_bad_line(collection: Collection, tmp_path: Path) -> None:
    """Strict says which line, and leaves nothing behind."""
    twin = Document("doc-07", {}, "line 0")
    with pytest.raises(BadLineFound, match="record 7: duplicate id: doc-07"):
        build(with_bad_lines(collection, [twin]), tmp_path / "new", 2, strict=True)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("found", "words"),
    [([], "no documents"), ([BadLine("line 3", "bad JSON", "x")], "1 bad, the first at line 3")],
)
def test_a_source_without_documents_is_refused(
    collection: Collection, tmp_path: Path, found: list[Document | BadLine], words: str
) -> None:
    """An empty source is one sentence, which shows the first bad line if there is one."""
    empty = msgspec.structs.replace(collection, read=lambda: iter(found))
    with pytest.raises(BuildRefused, match=words):
        build(empty, tmp_path, 1)


def test_a_shard_that_needs_two_segments_is_refused(
    docstrings: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Order and scores rest on one segment a shard, so a build of more fails in words."""
    monkeypatch.setattr(segment, "WRITER_BYTES", 15_000_000)  # the least that tantivy takes
    fat = Collection("fat", "fat", docstrings.fields, lambda: repeated(docstrings, 12))
    with pytest.raises(TooLarge, match="more shards"):
        build(fat, tmp_path, 1)


def repeated(collection: Collection, times: int) -> Iterator[Document | BadLine]:
    """The documents of a collection several times, under other names and with other words."""
    for i in range(times):
        for document in collection.read():
            if isinstance(document, Document):
                body = " ".join(f"{word}{i}" for word in document.source["body"].split())
                source = {**document.source, "body": body}
                yield Document(f"{document.id}#{i}", source)


def test_a_directory_that_is_a_file_is_refused(collection: Collection, tmp_path: Path) -> None:
    """A place where no folder can be is one sentence."""
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildRefused, match="Cannot build in"):
        build(collection, tmp_path / "file", 1)


def test_a_field_that_no_document_has_is_a_slip_of_the_pen(tmp_path: Path) -> None:
    """Its index would be searched in vain, without a word: nothing is built."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "title": "x"}\n{"id": 2, "body": "y"}\n', encoding="utf-8")
    both = fields_of(["title", "body"], [])
    assert build(jsonl(path, "id", both), tmp_path / "good", 1).manifest.documents == 2
    with pytest.raises(BuildRefused, match="a field 'titel'"):
        build(jsonl(path, "id", fields_of(["titel", "body"], [])), tmp_path / "bad", 1)
    assert not (tmp_path / "bad").exists()
