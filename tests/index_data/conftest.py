"""A small collection with known words, and real docstrings of a few packages."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from index_data.manifest import Field
from index_data.pydocs import pydocs
from index_data.sources import BadLine, Collection, Document

FIELDS = (Field("title", "text", weight=2.0), Field("body", "text"), Field("kind", "keyword"))


@pytest.fixture
def collection() -> Collection:
    """Forty documents: word-3 is in every third, "all words" in all, titles differ in length."""

    def read() -> Iterator[Document | BadLine]:
        for i in range(40):
            words = " ".join(f"word{n}" for n in range(1, 9) if i % n == 0)
            source = {
                "title": f"Number {i} " + "long " * (i % 5),
                "body": f"all words {words}",
                "kind": "even" if i % 2 == 0 else "odd",
            }
            yield Document(f"doc-{i:02d}", source, f"record {i}")

    return Collection("made", "forty", FIELDS, read)


@pytest.fixture(scope="session")
def docstrings(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """The docstrings of a few packages of the standard library: some hundreds."""
    folder = tmp_path_factory.mktemp("packages")
    for package in ("json", "email", "http", "logging", "csv.py", "argparse.py"):
        (folder / package).symlink_to(Path(sysconfig.get_paths()["stdlib"]) / package)
    return pydocs((folder,))
