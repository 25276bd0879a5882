"""The made-up collection."""

from __future__ import annotations

import json
from pathlib import Path

from bench import many_scripts
from index_data.files import file_collection
from index_data.schema_file import read_schema
from index_data.sources import Document


def test_every_document_fits_the_schema(tmp_path: Path) -> None:
    """All types are there, values lack now and then, all scripts occur."""
    source, schema = many_scripts.write(tmp_path, 300)
    said = read_schema(schema)
    found = list(file_collection(source, said.id_field, said.fields).read())
    documents = [one.source for one in found if isinstance(one, Document)]
    assert len(documents) == len(found) == 300
    types = {"text", "keyword", "integer", "float", "date", "boolean"}
    assert {field.type for field in said.fields} == types
    for field in said.fields[2:]:
        assert 200 < sum(field.name in one for one in documents) < 300, field.name
    assert {one.get("script") for one in documents} >= many_scripts.SCRIPTS.keys()


def test_the_seed_decides() -> None:
    """The same seed gives the same documents, another seed others."""
    one, same, other = (json.dumps([*many_scripts.documents(20, seed)]) for seed in (1, 1, 2))
    assert one == same != other
