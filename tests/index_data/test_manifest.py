"""A manifest comes back as it was written, or says what is wrong in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from index_data import manifest as m

NAME = "20260102-030405-abcd"


def a_manifest(**changes: Any) -> m.Manifest:
    """A legal manifest of two shards."""
    shard = m.ShardEntry(documents=3, tokens={"body": 9}, bytes=10, files={"f": "0" * 64})
    values: dict[str, Any] = {
        "format": m.FORMAT_VERSION,
        "generation": NAME,
        "source": m.Source("jsonl", "x.jsonl", {"bad JSON": 1}),
        "fields": (m.Field("body", "text"),),
        "analyser": "a",
        "partition": "p",
        "length_deviation": 0.01,
        "documents": 6,
        "statistics_sha256": "0" * 64,
        "shards": (shard, shard),
    }
    return m.Manifest(**(values | changes))


def test_a_manifest_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """Reading gives what was written, and its card what a root needs."""
    folder = tmp_path / NAME
    folder.mkdir()
    m.write_manifest(folder, a_manifest())
    assert m.read_manifest(folder) == a_manifest()
    assert m.read_manifest(folder).card() == m.GenerationCard(
        NAME, (3, 3), (m.Field("body", "text"),), 0.01
    )


def test_what_a_manifest_does_not_say_is_as_usual(tmp_path: Path) -> None:
    """An index that was written before a member was known can be opened, and one that has been
    built and never updated by those who do not know it.
    """
    folder = tmp_path / NAME
    folder.mkdir()
    m.write_manifest(folder, a_manifest(source=m.Source("jsonl", "x.jsonl")))
    written = json.loads((folder / m.MANIFEST_FILE).read_bytes())
    assert written["source"] == {"kind": "jsonl", "name": "x.jsonl"}
    source = m.read_manifest(folder).source
    assert (source.bad, source.id_field, source.updates) == ({}, "id", 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 99}, "format 99"),
        ({"generation": "20260102-030405-ffff"}, "belongs to"),
        ({"shards": []}, "no shards"),
        ({"documents": 7}, "add up"),
        ({"documents": "6"}, "documents"),
        ({"length_deviation": -1}, "length_deviation"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_wrong_manifest_is_named(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    """Any member that is wrong makes one sentence about it."""
    folder = tmp_path / NAME
    folder.mkdir()
    raw = json.loads(m.encode(a_manifest())) | change
    (folder / m.MANIFEST_FILE).write_text(json.dumps(raw))
    with pytest.raises(m.BadManifest, match=words):
        m.read_manifest(folder)


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[]", b"{}"])
def test_what_is_no_manifest_is_refused(tmp_path: Path, raw: bytes) -> None:
    """A cut or foreign file is a BadManifest."""
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / m.MANIFEST_FILE).write_bytes(raw)
    with pytest.raises(m.BadManifest):
        m.read_manifest(folder)


def test_a_missing_or_huge_manifest_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file, and a file that is too large to be a manifest, are refused unread."""
    folder = tmp_path / NAME
    folder.mkdir()
    with pytest.raises(m.BadManifest, match="cannot be read"):
        m.read_manifest(folder)
    m.write_manifest(folder, a_manifest())
    monkeypatch.setattr(m, "MANIFEST_BYTES_MAX", 10)
    with pytest.raises(m.BadManifest, match="too large"):
        m.read_manifest(folder)


def test_the_newest_complete_generation_is_the_latest(tmp_path: Path) -> None:
    """Folders without a manifest and folders of other names do not count."""
    for name in ("20260101-000000-0000", NAME):
        (tmp_path / name).mkdir()
        (tmp_path / name / m.MANIFEST_FILE).write_text("{}")
    (tmp_path / "20270101-000000-0000").mkdir()
    (tmp_path / "zzz").mkdir()
    assert m.generations(tmp_path) == ["20260101-000000-0000", NAME]
    assert m.latest_generation(tmp_path) == tmp_path / NAME


def test_nothing_built_is_told_from_half_built(tmp_path: Path) -> None:
    """An empty or missing directory has no index; one where a build began is half built."""
    with pytest.raises(m.NoIndex):
        m.latest_generation(tmp_path)
    with pytest.raises(m.NoIndex):
        m.latest_generation(tmp_path / "nowhere")
    (tmp_path / f"{m.BUILDING_PREFIX}1").mkdir()
    with pytest.raises(m.HalfBuilt):
        m.latest_generation(tmp_path)


def test_changed_and_missing_files_are_damaged(tmp_path: Path) -> None:
    """A shard with one wrong or missing byte is told by the name of the file."""
    entry = m.ShardEntry(1, {}, 1, {"f": m.sha256_of(_file(tmp_path / "original", b"good"))})
    shard = tmp_path / m.shard_folder(0)
    shard.mkdir()
    _file(shard / "f", b"good")
    m.verify_shard(tmp_path, 0, entry)
    _file(shard / "f", b"goof")
    with pytest.raises(m.Damaged, match="f has a wrong checksum"):
        m.verify_shard(tmp_path, 0, entry)
    (shard / "f").unlink()
    with pytest.raises(m.Damaged, match="f cannot be read"):
        m.verify_shard(tmp_path, 0, entry)


def _file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
