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


def test_an_update_tells_what_it_did_and_prune_what_is_gone(tmp_path: Path) -> None:
    """Counts, ids that are not there, the new generation; the schema and its id are known."""
    books = tmp_path / "books.csv"
    books.write_text("isbn,title,year\n1,One,1999\n2,Two,2000\n3,Three,\n")
    schema = tmp_path / "books.toml"
    schema.write_text(SCHEMA)
    out = tmp_path / "out"
    assert run("build", "--source", books, "--out", out, "--schema", schema, "--shards", 1)
    news, ids = tmp_path / "news.jsonl", tmp_path / "gone.txt"
    news.write_text('{"isbn": 3, "title": "Drei"}\n{"isbn": 4, "title": "Vier", "year": 4}\n')
    ids.write_text("2\n9\n")
    asked = ("update", out, "--source", news, "--delete", ids, "--delete-id", "8")
    refused = run(*asked, "--strict")
    assert refused.exit_code == 2
    assert "2 of the ids to delete are not there: '8', '9'." in refused.stderr
    updated = run(*asked, "--progress")
    assert updated.exit_code == 0, updated.output
    assert "2 of the ids to delete are not there: '8', '9'." in updated.stderr
    assert "1 documents replaced, 1 added, 1 deleted." in updated.stdout
    assert "3 documents of books.csv in 1 shards" in updated.stdout
    assert json.loads(run("oracle", out, "-q", "drei").stdout)["hits"][0]["id"] == "3"
    assert "csv, updated 1 times" in run("show", out).stdout
    news.write_text('{"isbn": 5, "title": "x", "year": "soon"}\n')
    wrong = run("update", out, "--source", news)
    assert wrong.exit_code == 2
    assert "line 1: wrong type: 'year' is not an integer of 64 bits: 'soon'." in wrong.stderr
    assert "Nothing is to be changed" in run("update", out).stderr
    assert "Nothing to remove" in run("prune", out).stdout
    run("update", out, "--delete-id", "4")
    assert run("prune", out, "--keep", 1).exit_code == 2
    first = generations(out)[0]
    assert f"Removed {first}." in run("prune", out).stdout
    assert len(generations(out)) == 2


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", "", "The source a.jsonl has no documents."),
        ("a.jsonl", "\n \n", "The source a.jsonl has no documents."),
        ("a.csv", "", "The source a.csv is empty: its first line must name the columns."),
        ("a.csv", "id,title\n", "The source a.csv has no documents."),
        ("a.jsonl", "{\n", "no good documents: 1 bad, the first at line 1: bad JSON"),
    ],
)
def test_an_empty_source_is_a_sentence(tmp_path: Path, name: str, content: str, says: str) -> None:
    """With a schema, without one, and where one is to be guessed and no more."""
    path = tmp_path / name
    path.write_text(content)
    for arguments in (
        ("build", "--out", tmp_path / "out"),
        ("build", "--out", tmp_path / "out", "--text-fields", "title"),
        ("schema",),
    ):
        result = run(*arguments, "--source", path)
        assert result.exit_code == 2
        assert says in result.stderr
        assert not result.stdout


def test_a_value_that_spoils_a_guess_is_told(tmp_path: Path) -> None:
    """Which value, where, and what the field is for it."""
    path = tmp_path / "days.jsonl"
    days = ["2020-12-31"] * 16 + ["31/12/20"] + ["2021-01-01"] * 3
    path.write_text(
        "".join(json.dumps({"id": i, "t": f"a {i} b", "day": d}) + "\n" for i, d in enumerate(days))
    )
    says = "field `day`: 1 of 20 values is no date, first at line 17 ('31/12/20'), so it is keyword"
    for arguments in (("schema",), ("build", "--shards", 1, "--out", tmp_path / "out")):
        result = run(*arguments, "--source", path)
        assert result.exit_code == 0
        assert says in result.stderr
        assert says not in result.stdout


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
