"""The command says one clear sentence when it cannot, with exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from index_data.__main__ import main
from index_data.manifest import (
    BUILDING_PREFIX,
    MANIFEST_FILE,
    generations,
    latest_generation,
    read_manifest,
)

GOOD = '{"id": %d, "title": "Number %d", "body": "some words %s"}\n'


def run(*arguments: object) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of ten good lines and two bad ones."""
    path = tmp_path / "some.jsonl"
    lines = [GOOD % (2**63 - 1 - i, i, "json " * i) for i in range(10)]
    path.write_text("".join([*lines[:3], "{\n", *lines[3:], "[]\n"]))
    return path


def build(source: Path, out: Path, *more: object) -> Result:
    """Build that file into two shards."""
    fields = ("--text-fields", "title^2,body")
    return run("build", "--source", source, "--out", out, "--shards", 2, *fields, *more)


def test_a_build_can_be_shown_and_asked(source: Path, tmp_path: Path) -> None:
    """Build, show and oracle work on one directory; bad lines are shown with their numbers."""
    built = build(source, tmp_path / "out", "--progress")
    assert built.exit_code == 0
    assert "2 bad, left out: 1 bad JSON, 1 not an object." in built.stderr
    assert "line 4: bad JSON" in built.stderr
    assert "line 12: not an object" in built.stderr
    build(source, tmp_path / "out")
    shown = run("show", tmp_path / "out")
    assert shown.exit_code == 0
    for words in ("older", "newest", "10 documents of some.jsonl in 2 shards", "title: text"):
        assert words in shown.stdout
    answer = json.loads(run("oracle", tmp_path / "out", "-q", "json", "-k", 3).stdout)
    assert answer["total"] == 9
    assert answer["hits"][0]["id"] == str(2**63 - 1 - 9)
    tree = '{"type": "word", "text": "3", "field": "title"}'
    answer = json.loads(run("oracle", tmp_path / "out", "--query", tree).stdout)
    assert [hit["id"] for hit in answer["hits"]] == [str(2**63 - 1 - 3)]


def test_more_bad_lines_than_are_kept_are_told_as_such(tmp_path: Path) -> None:
    """The count is exact and the list says that it is cut."""
    path = tmp_path / "bad.jsonl"
    path.write_text(GOOD % (1, 1, "") + GOOD % (2, 2, "") + "{\n" * 50)
    built = build(path, tmp_path / "out")
    assert built.exit_code == 0
    assert "50 bad" in built.stderr
    assert built.stderr.count("bad JSON:") == 20
    assert "the first 20 are shown" in built.stderr


def test_strict_stops_and_leaves_nothing(source: Path, tmp_path: Path) -> None:
    """The first bad line ends a strict build."""
    result = build(source, tmp_path / "out", "--strict")
    assert result.exit_code == 2
    assert "line 4: bad JSON" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("build", "--source", "x.txt", "--out", "out"), "must be pydocs or a file of .jsonl"),
        (("build", "--source", "x.jsonl", "--out", "out"), "x.jsonl"),
        (("build", "--source", "x.jsonl", "--out", "out", "--keyword-fields", "a"), "--text-f"),
        (("build", "--source", "x.jsonl", "--out", "out", "--schema", "no.toml"), "no.toml"),
        (
            ("build", "--source", "x.csv", "--out", "o", "--schema", "a", "--text-fields", "a"),
            "not both",
        ),
        (("schema", "--source", "x.xml"), ".parquet"),
        (("build", "--source", "x.jsonl", "--out", "out", "--text-fields", "a"), "x.jsonl"),
        (("build", "--source", "pydocs", "--out", "out", "--text-fields", "a"), "its own fields"),
        (("build", "--source", "pydocs", "--out", "out", "--shards", "0"), "shards"),
        (("build", "--source", "pydocs", "--out", "out", "--shards", "x"), "--shards"),
        (("show", "nowhere"), "no index"),
        (("oracle", "nowhere", "-q", "a"), "no index"),
        (("oracle", "nowhere"), "--query or -q"),
        (("oracle", "nowhere", "--query", "{"), "not JSON"),
        (("oracle", "nowhere", "--query", "[]"), "JSON object"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong is named, without a traceback."""
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_half_built_and_broken_indexes_are_told(source: Path, tmp_path: Path) -> None:
    """Half built and unreadable are different sentences, both with exit code 2."""
    (tmp_path / "half" / f"{BUILDING_PREFIX}1").mkdir(parents=True)
    assert "half built" in run("show", tmp_path / "half").stderr
    build(source, tmp_path / "out")
    (latest_generation(tmp_path / "out") / MANIFEST_FILE).write_text("{")
    result = run("show", tmp_path / "out")
    assert result.exit_code == 2
    assert "is not valid" in result.stderr


SCHEMA = """
id = "isbn"

[fields.title]
type = "text"
weight = 2

[fields.year]
type = "integer"
"""


def test_a_schema_decides_what_is_a_field_and_wrong_values_are_told(tmp_path: Path) -> None:
    """The build follows the file; a value of another type is named with line, field, value."""
    schema = tmp_path / "books.toml"
    schema.write_text(SCHEMA)
    books = tmp_path / "books.csv"
    books.write_text("isbn,title,year,tags\n1,One,1999,x\n2,Two,soon,y\n3,Three,,\n")
    arguments = ("build", "--source", books, "--out", tmp_path / "out", "--schema", schema)
    built = run(*arguments, "--shards", 1)
    assert built.exit_code == 0
    assert "line 3: wrong type: 'year' is not an integer of 64 bits: 'soon'" in built.stderr
    shown = run("show", tmp_path / "out").stdout
    assert "title: text, english, weight 2, default, 2 tokens" in shown
    assert "year: integer, 1 values" in shown
    strict = run(*arguments, "--shards", 1, "--strict")
    assert strict.exit_code == 2
    assert "line 3" in strict.stderr


def test_a_guessed_schema_is_shown_and_can_be_written(tmp_path: Path) -> None:
    """Without a schema the build guesses one and says which; the command prints the same."""
    source = tmp_path / "some.jsonl"
    lines = [json.dumps({"id": i, "body": f"some words {i}", "at": "2001-01-01"}) for i in range(9)]
    source.write_text("\n".join(lines))
    printed = run("schema", "--source", source).stdout
    assert '[fields.at]\ntype = "date"' in printed
    built = run("build", "--source", source, "--out", tmp_path / "out", "--shards", 1)
    assert built.exit_code == 0
    assert printed in built.stderr
    schema = tmp_path / "some.toml"
    schema.write_text(printed)
    again = run(
        "build", "--source", source, "--out", tmp_path / "out", "--shards", 1, "--schema", schema
    )
    assert again.exit_code == 0
    assert [
        read_manifest(tmp_path / "out" / name).fields for name in generations(tmp_path / "out")
    ] == [read_manifest(latest_generation(tmp_path / "out")).fields] * 2
