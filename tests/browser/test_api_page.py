"""The page of the API in a real browser: the whole document, readable, and links that work."""

from __future__ import annotations

import pytest

from tests.browser import audit
from tests.browser.chromium import PHONE
from tests.browser.conftest import Opened

pytestmark = pytest.mark.live


def test_the_page_of_the_api_shows_every_route(opened: Opened) -> None:
    """Each with its parameters, answers and types; it is reached from the search page."""
    page = opened()
    page.get_by_role("link", name="API").click()
    page.wait_for_selector(".operation")
    headings = page.get_by_role("heading", level=2).all_inner_texts()
    assert {"GET /search", "POST /search", "GET /documents/{id}", "SearchRequest"} <= set(headings)
    search = page.get_by_role("region", name="GET /search")
    assert "min_coverage" in search.inner_text()
    assert "504" in search.inner_text()
    page.get_by_role("link", name="SearchRequest").first.click()
    assert page.url.endswith("#SearchRequest")


def test_the_page_of_the_api_can_be_used_by_all(opened: Opened) -> None:
    """Names for what can be used, contrast, and no sideways scrolling on a phone."""
    page = opened("/docs", size=PHONE, dark=True)
    page.wait_for_selector(".operation")
    used, nameless = audit.names(page)
    assert used >= 8
    assert nameless == []
    assert audit.faint(page) == []
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
