"""The page in a real browser: search, the race, and that nothing of a hit is obeyed."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from playwright.sync_api import expect

from bench.fleet import Fleet
from tests.browser import audit
from tests.browser.chromium import PHONE
from tests.browser.conftest import DOCUMENTS, EVIL, SHARDS, Opened
from tests.browser.troubled import search, trouble

pytestmark = pytest.mark.live

HEDGE: Final = '.try[data-kind="hedge"][data-fate="won"]'

LOOK: Final = "bar => getComputedStyle(bar).backgroundImage + getComputedStyle(bar).borderTopStyle"
"""What is left of a bar where no colour is seen."""

REFUSED: Final = {"title": "Bad request", "detail": "there is no field 'colour'"}

NARROW: Final = (360, 740)
TRIES_MAX: Final = 20
"""A leaf that is slow is hedged at the first or second search, unless it was not asked."""


def ask(page: Any, q: str) -> None:
    """Type a query and wait for its answer."""
    page.get_by_label("Search the index").fill(q)
    page.keyboard.press("Enter")
    page.wait_for_selector(".leg")


def signed(bar: Any) -> str:
    """The letter and sign that stand beside a bar."""
    text: str = bar.evaluate("bar => bar.nextElementSibling.textContent")
    return text


def test_a_search_shows_hits_and_what_matched_in_them(opened: Opened, fleet: Fleet) -> None:
    """The same ids as the API, matches marked, and how much was searched."""
    page = opened()
    ask(page, "heron mill")
    wanted = [hit["id"] for hit in search(fleet, "heron mill")["hits"]]
    assert page.locator(".hit .id").all_inner_texts() == wanted
    marked = {text.lower() for text in page.locator(".hit mark").all_inner_texts()}
    assert marked == {"heron", "mill"}
    status = page.get_by_role("status").first.inner_text()
    assert re.match(r"\d+ hits in [\d.]+ ms", status)
    assert f"all {DOCUMENTS + 1} documents searched" in status


def test_pages_and_the_back_button_lead_where_they_say(opened: Opened) -> None:
    """The address holds the query, so that it can be shared and gone back to."""
    page = opened("/?q=otter")
    page.wait_for_selector(".hit")
    first = page.locator(".hit .id").all_inner_texts()
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#hits")).to_have_attribute("start", "11")
    second = page.locator(".hit .id").all_inner_texts()
    assert "offset=10" in page.url
    assert not set(first) & set(second)
    page.go_back()
    expect(page.locator("#hits")).to_have_attribute("start", "1")
    assert page.locator(".hit .id").all_inner_texts() == first


def test_nothing_found_is_said(opened: Opened) -> None:
    """In a status that is read out."""
    page = opened("/?q=zzzzz")
    page.wait_for_selector("#status strong")
    assert "Nothing found" in page.locator("#status").inner_text()


def test_suggestions_come_while_one_types(opened: Opened) -> None:
    """The keyboard chooses one; Escape sends them away."""
    page = opened()
    field = page.get_by_role("combobox", name="Search the index")
    field.press_sequentially("will")
    first = page.get_by_role("option").first
    expect(first).to_contain_text("willow")
    field.press("Escape")
    expect(first).to_be_hidden()
    field.press_sequentially("o")
    expect(first).to_be_visible()
    field.press("ArrowDown")
    assert field.get_attribute("aria-activedescendant") == first.get_attribute("id")
    field.press("Enter")
    page.wait_for_selector(".leg")
    assert "q=willow" in page.url
    expect(page.get_by_role("listbox")).to_be_hidden()


def test_facets_count_what_hits_have_and_keep_to_it(opened: Opened) -> None:
    """A value leads to as many hits as it says, in an address of its own; its chip leads back."""
    page = opened("/?q=heron")
    facet = page.get_by_role("region", name="place")
    everything = page.locator("#status strong").inner_text()
    wanted = facet.locator("li", has_text="shore").locator(".number").inner_text()
    facet.get_by_role("button", name="shore").click()
    expect(page.locator("#status strong")).to_have_text(f"{wanted} hits")
    assert "filter=" in page.url
    assert everything != f"{wanted} hits"
    page.get_by_role("button", name="No longer only place: shore").click()
    expect(page.locator("#status strong")).to_have_text(everything)


def test_a_filter_stays_until_it_is_taken_off(opened: Opened) -> None:
    """Through another query, through one that finds nothing, and back; it is seen all the time."""
    page = opened("/?q=heron")
    page.get_by_role("region", name="place").get_by_role("button", name="shore").click()
    chip = page.get_by_role("button", name="No longer only place: shore")
    expect(chip).to_be_visible()
    for q in ("otter", "zzzzz"):
        page.get_by_label("Search the index").fill(q)
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(rf"q={q}&filter=.*shore"))
        expect(chip).to_be_visible()
    expect(page.locator("#status strong")).to_have_text("Nothing found")
    page.go_back()
    expect(page.locator("#status strong")).to_have_text(re.compile(r"^[1-9]\d* hits?$"))
    expect(page.get_by_role("region", name="place").locator("li")).to_have_count(1)
    chip.click()
    expect(page.get_by_role("region", name="place").locator("li")).not_to_have_count(1)
    assert "filter=" not in page.url


def test_a_filter_that_is_refused_can_be_taken_off(opened: Opened) -> None:
    """It came with the address, and there is no such field."""
    page = opened("/?q=heron")
    page.wait_for_selector(".hit")
    page.route("**/search?*filter=*", lambda route: route.fulfill(json=REFUSED))
    page.evaluate("history.pushState(null, '', './?q=heron&filter=[null,{\"field\":\"colour\"}]')")
    page.evaluate("dispatchEvent(new PopStateEvent('popstate'))")
    expect(page.locator("#status")).to_contain_text("there is no field 'colour'")
    expect(page.locator("#answer")).to_be_hidden()
    chips = page.get_by_role("button", name=re.compile("^No longer only "))
    chips.first.click()
    expect(chips).to_have_count(1)
    chips.first.click()
    expect(page.locator(".hit").first).to_be_visible()


def test_what_could_not_be_read_of_a_query_is_said(opened: Opened) -> None:
    """With the character at which it stands."""
    page = opened("/?q=heron+%22mill")
    page.wait_for_selector(".hit")
    assert re.search(r"At character \d+: ", page.locator("#missing").inner_text())


def test_what_is_missing_is_said(opened: Opened, fleet: Fleet) -> None:
    """A partial answer is not to be taken for a whole one."""
    page = opened()
    answer = search(fleet, "reed")
    answer["coverage"] |= {"complete": False, "answered": SHARDS - 2, "searched": 700}
    answer["coverage"]["missing"] = [{"shard": s, "reason": "timeout"} for s in (3, 9)]
    answer["total"]["relation"] = "gte"
    answer["trace"] = []
    page.route("**/search?*", lambda route: route.fulfill(json=answer))
    page.get_by_label("Search the index").fill("reed")
    page.keyboard.press("Enter")
    alert = page.get_by_role("alert").inner_text()
    assert f"2 of {SHARDS} shards are missing" in alert
    assert "shard 3, 9: did not answer in time" in alert
    status = page.locator("#status").inner_text()
    assert status.startswith("at least ")
    assert "700 of 801 documents searched" in status


def test_the_race_has_a_row_for_every_shard(opened: Opened) -> None:
    """Both phases, each bar within the axis, and a sentence for who cannot see it."""
    page = opened("/?q=willow")
    page.wait_for_selector(".leg")
    rows = page.get_by_role("button", name=re.compile(r"^Shard \d+ answered by leaf\d after"))
    assert rows.count() == SHARDS
    phases = page.locator(".try[data-phase]").evaluate_all("all => all.map(t => t.dataset.phase)")
    assert set(phases) >= {"search", "fetch"}
    assert page.evaluate(
        """[...document.querySelectorAll('.legs .try')].every(bar => {
             const [inner, outer] = [bar, bar.parentElement].map(e => e.getBoundingClientRect());
             return inner.left >= outer.left - 1 && inner.right <= outer.right + 3;
           })"""
    )


def test_after_a_hedge_the_winner_and_the_cancelled_are_told_apart(
    opened: Opened, fleet: Fleet
) -> None:
    """By letter, sign and pattern, not by colour alone; a row opens by click and by key and tells
    the times.
    """
    page = opened()
    trouble(fleet, 1, "slow")
    try:
        for _ in range(TRIES_MAX):
            ask(page, "bridge")
            if page.locator(f".legs {HEDGE}").count():
                break
            page.goto(fleet.root_url)
    finally:
        trouble(fleet, 1, "quicken")
    row = page.locator(".legs > li", has=page.locator(HEDGE)).first
    winner = row.locator(HEDGE)
    loser = row.locator('.try[data-kind="primary"]').first
    assert signed(winner) == "H✓"
    assert signed(loser) in {"✕", "\N{EN DASH}"}
    looks = [bar.evaluate(LOOK) for bar in (winner, loser)]
    assert looks[0] != looks[1]
    button = row.get_by_role("button")
    name = button.get_attribute("aria-label")
    assert re.search(r"first attempt on leaf1 (cancelled|too late), hedge on leaf\d won", name), (
        name
    )
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    times = row.locator("table").inner_text()
    assert all(word in times for word in ("queue", "service", "hedge", "leaf1", "won"))
    button.press("Enter")
    assert button.get_attribute("aria-expanded") == "false"
    button.press("ArrowDown")
    assert page.evaluate("document.activeElement.classList.contains('leg')")


def test_nothing_of_a_hit_is_run(opened: Opened) -> None:
    """What looks like HTML is shown as it is, in title, snippet, fields and id."""
    page = opened(f"/?q={EVIL}")
    page.wait_for_selector(".hit")
    page.locator(".hit summary").click()
    hit = page.locator(".hit").inner_text()
    attack = "<script>window.hacked=2</script>"
    assert attack in page.get_by_role("region", name="place").inner_text()
    assert hit.count("<script>window.hacked=2</script>") >= 3
    assert '<svg onload="window.hacked=3">' in hit
    assert "&lt;b&gt;" in hit
    assert page.locator(".found :is(img, script, svg, b)").count() == 0
    assert page.evaluate("window.hacked") is None


def test_a_query_is_no_html_either(opened: Opened) -> None:
    """Whoever sends a link cannot put a script into it."""
    page = opened("/?q=%3Cimg%20src%3Dx%20onerror%3D%22window.hacked%3D1%22%3E")
    page.wait_for_selector("#status *")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize("path", ["/", "/?q=river+stone", f"/?q={EVIL}", "/#live"])
def test_a_phone_needs_no_sideways_scrolling(opened: Opened, path: str) -> None:
    """At 360 pixels, with a row opened."""
    page = opened(path, size=NARROW)
    page.wait_for_selector(".leg" if "q=" in path else ".leaf" if "live" in path else ".lead")
    if "q=" in path:
        page.locator(".leg").first.click()
        page.locator(".hit summary").first.click()
    widest = page.evaluate("document.documentElement.scrollWidth")
    assert widest <= NARROW[0]


@pytest.mark.parametrize("path", ["/?q=river+stone", "/#live"])
def test_a_label_is_whole_or_not_there(opened: Opened, path: str) -> None:
    """On a phone there is no room for some, and half a word is none."""
    page = opened(path, size=NARROW)
    page.wait_for_selector(".leg" if "q=" in path else ".leaf")
    assert audit.clipped(page) == []
    narrowed = page.locator(".phase").evaluate_all(
        "phases => phases.map(phase => { phase.style.width = '1.5rem'; }).length"
    )
    assert bool(narrowed) == ("q=" in path)
    assert audit.clipped(page) == []


@pytest.mark.parametrize("path", ["/?q=river+stone", "/#live"])
def test_everything_that_can_be_used_has_a_name(opened: Opened, path: str) -> None:
    """In the tree that screen readers get."""
    page = opened(path)
    page.wait_for_selector(".leg" if "q=" in path else ".leaf")
    used, nameless = audit.names(page)
    assert used >= 8
    assert nameless == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", ["/?q=river+stone", "/#live"])
def test_text_stands_out_from_what_is_behind_it(opened: Opened, path: str, dark: bool) -> None:
    """By 4.5 to 1, or 3 to 1 where it is large (WCAG 2.2, 1.4.3)."""
    page = opened(path, size=PHONE, dark=dark)
    page.wait_for_selector(".leg" if "q=" in path else ".leaf")
    assert audit.faint(page) == []


def test_the_keyboard_reaches_everything_and_shows_where_it_is(opened: Opened) -> None:
    """Tab goes from the skip link to the form and the views; the focus is seen."""
    page = opened("/")
    page.wait_for_selector("#index:not(:empty)")
    names = []
    for _ in range(7):
        page.keyboard.press("Tab")
        seen = page.evaluate(
            "[document.activeElement.textContent.trim() || document.activeElement.id,"
            " getComputedStyle(document.activeElement).outlineStyle]"
        )
        names.append(seen[0])
        assert seen[1] == "solid", names
    assert names == ["Skip to the content", "Hedgerow", "Search", "Live", "API", "q", "Search"]
