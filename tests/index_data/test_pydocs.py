"""Docstrings are read from sources, without running anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from index_data.pydocs import pydocs, searchable_path
from index_data.sources import BadLine, BadSource, Document

MODULE = '''
"""About the module."""
import sys
if sys.platform == "win32":
    def here(): "On windows: \\d"
else:
    def here(): "Elsewhere"
class Bird(Animal):
    """A bird."""
    async def fly(self, far: int = 3) -> bool:
        """Fly."""
        def inner(): "Nobody finds me"
    @property
    def wing(self): "The wing"
    @wing.setter
    def wing(self, value): "Set the wing"
    def silent(self): pass
try:
    import fast
except ImportError:
    def slow(*args, key=None): "The slow way"
raise SystemExit("this must never run")
'''


@pytest.fixture
def documents(tmp_path: Path) -> dict[str, Document | BadLine]:
    """What a folder with one module, one package, a test suite and a broken file yields."""
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "__init__.py").write_text('"The zoo"')
    (tmp_path / "zoo" / "birds.py").write_text(MODULE)
    for skipped in ("tests", "_vendor", "__pycache__", "site-packages"):
        (tmp_path / "zoo" / skipped).mkdir()
        (tmp_path / "zoo" / skipped / "x.py").write_text('"Not me"')
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "null.py").write_bytes(b"x = '\0'")
    (tmp_path / "not-a-module.py").write_text('"Not me"')
    found = pydocs((tmp_path,)).read()
    return {x.id if isinstance(x, Document) else x.where: x for x in found}


def test_every_documented_object_is_a_document(
    documents: dict[str, Document | BadLine],
) -> None:
    """Modules, classes, methods and functions with docstrings, in branches too, are found."""
    assert set(documents) == {
        "broken.py",
        "null.py",
        "zoo",
        "zoo.birds",
        "zoo.birds.here",
        "zoo.birds.Bird",
        "zoo.birds.Bird.fly",
        "zoo.birds.Bird.wing",
        "zoo.birds.slow",
    }


def test_a_document_has_all_fields(documents: dict[str, Document | BadLine]) -> None:
    """Name, module, kind, path, signature, docstring and its size are members of the source."""
    fly = documents["zoo.birds.Bird.fly"]
    assert isinstance(fly, Document)
    assert fly.source == {
        "name": "fly",
        "module": "zoo.birds",
        "kind": "method",
        "path": "zoo birds Bird fly",
        "signature": "async fly(self, far: int=3) -> bool",
        "body": "Fly.",
        "lines": 1,
        "has_examples": False,
    }


def test_lines_and_examples_are_counted(tmp_path: Path) -> None:
    """Lines as they are shown, and whether there is a prompt."""
    (tmp_path / "a.py").write_text('"""Add.\n\n    >>> 1 + 1\n    2\n    """')
    (document,) = pydocs((tmp_path,)).read()
    assert isinstance(document, Document)
    assert document.source["lines"] == 4
    assert document.source["has_examples"] is True


def test_the_first_definition_wins(documents: dict[str, Document | BadLine]) -> None:
    """What is defined twice in a file is one document."""
    here, wing = documents["zoo.birds.here"], documents["zoo.birds.Bird.wing"]
    assert isinstance(here, Document)
    assert here.source["body"].startswith("On windows")
    assert isinstance(wing, Document)
    assert wing.source["body"] == "The wing"


@pytest.mark.parametrize("file", ["broken.py", "null.py"])
def test_files_that_cannot_be_parsed_are_told(
    documents: dict[str, Document | BadLine], file: str
) -> None:
    """A broken file is a bad line with its name."""
    bad = documents[file]
    assert isinstance(bad, BadLine)
    assert bad.reason == "cannot be parsed"


def test_order_does_not_depend_on_the_file_system(tmp_path: Path) -> None:
    """Files are read in the order of their names."""
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.py").write_text('"Doc"')
    found = [x.id for x in pydocs((tmp_path,)).read() if isinstance(x, Document)]
    assert found == ["a", "b", "c"]


def test_no_sources_is_an_error(tmp_path: Path) -> None:
    """A folder that is not there is one sentence."""
    with pytest.raises(BadSource, match="nowhere"):
        pydocs((tmp_path / "nowhere",))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("json.dumps", "json dumps"),
        ("json.decoder.JSONDecoder", "json decoder JSONDecoder JSON Decoder"),
        ("http.HTTPStatus", "http HTTPStatus HTTP Status"),
        ("a.load_module", "a load_module"),
        ("a.getBaseType2", "a getBaseType2 get Base Type 2"),
    ],
)
def test_paths_are_split_into_words(path: str, words: str) -> None:
    """Qualified names are searchable whole and by their parts."""
    assert searchable_path(path) == words
