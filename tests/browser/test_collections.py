"""The page of a root that serves two collections, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from bench import corpus
from bench.fleet import Fleet, Shape, running
from tests.browser import audit
from tests.browser.conftest import Opened

pytestmark = pytest.mark.live

KINDS = ("heron", "otter")


def build(folder: Path, kind: str, documents: int) -> Path:
    """Build an index of documents about one kind of animal."""
    source = folder / f"{kind}.jsonl"
    lines = [f'{{"id": "d{n}", "title": "{kind} {n}"}}\n' for n in range(documents)]
    source.write_text("".join(lines), encoding="utf-8")
    corpus.build(folder / kind, str(source), 2, "--id-field", "id", "--text-fields", "title")
    return folder / kind


@pytest.fixture(name="fleet", scope="module")
def fleet_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two leaves that serve two collections."""
    folder = tmp_path_factory.mktemp("both")
    first, second = (build(folder, kind, size) for kind, size in zip(KINDS, (20, 30), strict=True))
    options = ("--index", f"otters={second}")
    with running(Shape(first, leaves=2, leaf_options=options)) as fleet:
        yield fleet


def test_a_collection_is_chosen_and_stays_chosen(opened: Opened) -> None:
    """The page tells how large it is, searches it, and keeps it in its addresses."""
    page = opened()
    choice = page.get_by_label("Collection")
    assert choice.locator("option").all_inner_texts() == ["default", "otters"]
    expect(page.locator("#index")).to_contain_text("20 documents")
    choice.select_option("otters")
    expect(page.locator("#index")).to_contain_text("30 documents")
    expect(page.get_by_label("Collection")).to_have_value("otters")
    page.get_by_label("Search the index").fill("otter")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("30 hits")
    assert "collection=otters" in page.url
    page.reload()
    expect(page.get_by_role("status").first).to_contain_text("30 hits")
    assert audit.faint(page) == []
    _, nameless = audit.names(page)
    assert nameless == []


def test_where_none_is_chosen_the_first_is_searched(opened: Opened) -> None:
    """Its address says nothing of collections."""
    page = opened("/?q=heron")
    expect(page.get_by_role("status").first).to_contain_text("20 hits")
    assert "collection" not in page.url
