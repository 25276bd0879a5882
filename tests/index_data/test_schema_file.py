"""A schema file says what fields there are, or which of its lines is wrong and why."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index_data import schema_file as s
from index_data.analysis import STEMMED, WITH_STOP_WORDS
from index_data.manifest import Analysis, Field

FULL = """
id = "isbn"
[fields.title]
type = "text"
weight = 3
language = "german"
stop_words = true
fold_accents = false
[fields.tags]
type = "keyword"
multiple = true
default = true
[fields.at]
type = "date"
"""


def read(tmp_path: Path, text: str) -> s.SchemaFile:
    """What a file with this text says."""
    path = tmp_path / "books.toml"
    path.write_text(text)
    return s.read_schema(path)


def test_every_option_is_read(tmp_path: Path) -> None:
    """Types, weights, analysis; only text is searched by default."""
    assert read(tmp_path, FULL) == s.SchemaFile(
        "isbn",
        (
            Field("title", "text", 3.0, analysis=Analysis("german", True, False)),
            Field("tags", "keyword", default=True, multiple=True),
            Field("at", "date", default=False),
        ),
    )
    assert read(tmp_path, '[fields.a]\ntype="text"').id_field == "id"


TEXT = '[fields.a]\ntype="text"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "not TOML"),
        ("", "no fields"),
        ("fields = 3", "no fields"),
        ('[fields.a]\ntype="keyword"', "at least one field must be text"),
        ("id = 3\n" + TEXT, "id must be"),
        ('it = "x"\n' + TEXT, "knows no 'it'; there are id, fields"),
        ("[fields]\na = 3", "fields.a must be a table"),
        ('[fields."a.b"]\ntype="text"', "fields.a.b: a name"),
        ("[fields._a]", "fields._a: a name"),
        ("[fields.a]", "fields.a.type must be one of text, keyword, integer"),
        ('[fields.a]\ntype="string"', "'string'"),
        (TEXT + "stemmer = 1", "fields.a knows no 'stemmer'"),
        (TEXT + 'language = "klingon"', "fields.a.language must be one of arabic"),
        (TEXT + 'language = ["x"]', "fields.a.language"),
        (TEXT + 'language = "greek"\nstop_words = true', "no list for greek"),
        (TEXT + "stop_words = 1", "fields.a.stop_words must be true or false"),
        (TEXT + "weight = 0", "fields.a.weight must be a number from 0"),
        (TEXT + "weight = nan", "fields.a.weight"),
        (TEXT + "weight = true", "fields.a.weight"),
        (TEXT + '[fields.n]\ntype="integer"\nweight=2', "fields.n.weight is for text"),
        (TEXT + '[fields.n]\ntype="keyword"\nlanguage="none"', "fields.n.language is for text"),
        ("\n".join(f'[fields.f{i}]\ntype="text"' for i in range(65)), "65 fields"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(tmp_path: Path, text: str, words: str) -> None:
    """File, member and choice stand in one sentence."""
    with pytest.raises(s.BadSchema) as caught:
        read(tmp_path, text)
    assert "books.toml" in str(caught.value)
    assert words in str(caught.value)


def test_a_file_that_is_missing_or_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is read."""
    with pytest.raises(s.BadSchema, match=r"no\.toml cannot be read"):
        s.read_schema(tmp_path / "no.toml")
    monkeypatch.setattr(s, "FILE_BYTES_MAX", 3)
    with pytest.raises(s.BadSchema, match="too large"):
        read(tmp_path, FULL)


names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
weights = st.sampled_from([0.5, 1.0, 3.0, 1000.0])
texts = st.builds(
    lambda name, weight, default, multiple, language, stop, fold: Field(
        name,
        "text",
        weight,
        default,
        multiple,
        Analysis(language, stop and language in WITH_STOP_WORDS, fold),
    ),
    names,
    weights,
    st.booleans(),
    st.booleans(),
    st.sampled_from([*STEMMED, "none"]),
    st.booleans(),
    st.booleans(),
)
keywords = st.builds(Field, names, st.just("keyword"), weights, st.booleans(), st.booleans())
others = st.builds(
    lambda name, kind, multiple: Field(name, kind, default=False, multiple=multiple),
    names,
    st.sampled_from(["integer", "float", "date", "boolean"]),
    st.booleans(),
)
schemas = st.builds(
    lambda identity, fields: s.SchemaFile(identity, (Field("First", "text"), *fields)),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=5),
    st.lists(texts | keywords | others, max_size=5, unique_by=lambda field: field.name).map(
        lambda fields: [field for field in fields if field.name != "First"]
    ),
)


@given(schemas)
def test_reading_what_was_written_gives_the_same_schema(schema: s.SchemaFile) -> None:
    """What the command prints is the schema that it guessed, whatever that is."""
    text = s.written(schema)
    assert s.schema_of(tomllib.loads(text)) == schema
