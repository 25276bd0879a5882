"""What changes in an index that is compared: shares, by the seed, as an update reads it."""

from __future__ import annotations

import json
import random
from pathlib import Path

from bench import corpus

DOCUMENTS = [(f"d{i:03d}", {"id": f"d{i:03d}", "text": f"Ünï {i}"}) for i in range(200)]


def test_so_many_are_replaced_and_others_deleted(tmp_path: Path) -> None:
    """One in twenty each, none of both; who is replaced gets the text of another."""
    replaced, deleted = corpus.changes(DOCUMENTS, random.Random(1))
    assert len(replaced) == len(deleted) == 10
    assert not {one["id"] for one in replaced} & set(deleted)
    before = dict(DOCUMENTS)
    assert all(one["text"] != before[one["id"]]["text"] for one in replaced)
    assert corpus.changes(DOCUMENTS, random.Random(1)) == (replaced, deleted)
    assert corpus.changes(DOCUMENTS, random.Random(2)) != (replaced, deleted)
    source, gone = corpus.write_changes(tmp_path, replaced, deleted)
    assert [json.loads(line) for line in source.read_text().splitlines()] == replaced
    assert gone.read_text().split() == deleted
