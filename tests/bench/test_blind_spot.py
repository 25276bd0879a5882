"""The blind spot: what two scrapes say, what fails the experiment, and what it prints."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench import omission, scraping
from bench.experiments import blind_spot
from bench.recorder import Recorder
from bench.scraping import Reading, Scrape

LEAF = """\
# TYPE hedgerow_leaf_loop_lag_seconds histogram
hedgerow_leaf_loop_lag_seconds_bucket{{le="+Inf"}} {beats}
hedgerow_leaf_loop_lag_seconds_count {beats}
hedgerow_leaf_loop_lag_seconds_sum {late_s}
# TYPE hedgerow_leaf_loop_blocked_seconds counter
hedgerow_leaf_loop_blocked_seconds_total {late_s}
# TYPE hedgerow_leaf_service_seconds histogram
hedgerow_leaf_service_seconds_bucket{{le="0.001"}} {quick}
hedgerow_leaf_service_seconds_bucket{{le="0.002"}} {legs}
hedgerow_leaf_service_seconds_bucket{{le="+Inf"}} {legs}
"""

ROOT = """\
# TYPE hedgerow_root_requests_in_flight gauge
hedgerow_root_requests_in_flight {in_flight}
# TYPE hedgerow_root_leaf_seen_seconds counter
hedgerow_root_leaf_seen_seconds_total{{leaf="a"}} {seen_s}
hedgerow_root_leaf_seen_seconds_total{{leaf="b"}} 1
# TYPE hedgerow_root_leaf_reported_seconds counter
hedgerow_root_leaf_reported_seconds_total{{leaf="a"}} {reported_s}
"""


def scraped(at_s: float, **values: float) -> Scrape:
    """Both expositions with these figures, 0 for the others."""
    names = ("beats", "late_s", "quick", "legs", "in_flight", "seen_s", "reported_s")
    figures = dict.fromkeys(names, 0.0) | values
    root, leaf = ROOT.format(**figures), LEAF.format(**figures)
    return Scrape(at_s, scraping.parse(root), scraping.parse(leaf))


def test_two_scrapes_say_what_happened_between_them() -> None:
    """Counters by their difference; what is in flight, as it is at the later one."""
    before = scraped(10.0, beats=100, late_s=1, quick=40, legs=50, seen_s=2, reported_s=1)
    after = scraped(
        12.0, beats=104, late_s=2, quick=135, legs=150, in_flight=7, seen_s=22, reported_s=2
    )
    assert scraping.between(before, after) == Reading(
        at_s=12.0,
        loop_lag_ms=250.0,
        blocked_share=0.5,
        in_flight=7.0,
        seen_to_reported=20.0,
        own_p95_ms=1.0,
        own_max_ms=2.0,
    )


def test_nothing_between_two_scrapes_is_nothing() -> None:
    """No beat, no leg: zeros, and no division by them."""
    reading = scraping.between(scraped(0.0), scraped(1.0))
    assert set(msgspec.structs.astuple(reading)) == {0.0, 1.0}
    assert scraping.highest({}, "none", (50.0,)) == [0.0]


def moment(*, blocked: bool) -> blind_spot.Moment:
    """One scrape: of an idle leaf, or of a blocked one."""
    lag_ms, share, in_flight, ratio = (200.0, 0.9, 12.0, 9.0) if blocked else (0.5, 0.0, 1.0, 1.2)
    reading = Reading(1.0, lag_ms, share, in_flight, ratio, own_p95_ms=4.1, own_max_ms=16.4)
    return blind_spot.Moment(reading, 600.0 if blocked else 20.0)


def recorded(*latencies_ms: float) -> Recorder:
    """Requests that took so long."""
    recorder = Recorder()
    for latency_ms in latencies_ms:
        recorder.record("complete", latency_ms / 1e3)
    return recorder


@pytest.fixture(name="result")
def result_fixture() -> blind_spot.Result:
    """A run in which all holds."""
    moments = [moment(blocked=False)] * 3 + [moment(blocked=True)] * 3
    corrected, uncorrected = recorded(*range(10, 1400, 10)), recorded(*[10.0] * 139)
    both = omission.Omission(
        corrected.summary(),
        uncorrected.summary(),
        {"corrected": corrected.curve_ms(), "uncorrected": uncorrected.curve_ms()},
    )
    return blind_spot.Result(
        scrape_s=1.0,
        client={
            "before": recorded(*range(10, 40)).summary(),
            "during": recorded(*range(310, 610)).summary(),
        },
        leaf={"before": moments[0].reading, "during": moments[3].reading},
        answered_per_s=25.0,
        lookups=10,
        metrics={
            name: blind_spot.Watched(
                getattr(moments[0].reading, name),
                getattr(moments[0].reading, name),
                getattr(moments[3].reading, name),
                getattr(moments[3].reading, name),
            )
            for name in blind_spot.METRICS
        },
        moments=moments,
        omission={"quiet": both, "stall": both},
    )


def said(result: blind_spot.Result) -> str:
    """What is printed."""
    text = StringIO()
    blind_spot.show(result, Console(file=text, width=140))
    return text.getvalue()


def test_a_run_in_which_all_holds_says_so(result: blind_spot.Result) -> None:
    """Published figures beside measured ones, and every metric with its ranges."""
    assert result.failures == []
    text = said(result)
    assert "the leaf does not see it" in text
    assert "599.9" in text or "600" in text
    assert all(words in text for words in blind_spot.METRICS.values())
    by_name = {one.name: one for one in blind_spot.comparisons(result)}
    assert by_name["client, p50"].ratio == pytest.approx(459 / 305, abs=0.01)
    assert by_name["leaf's own max, during"].published == 13.901667
    stall = {
        one.arm: one.published
        for one in omission.comparisons(result.omission)
        if "stall" in one.name
    }
    assert stall == {"corrected": 1270, "uncorrected": None}


def test_each_thing_that_must_hold_fails_by_itself(result: blind_spot.Result) -> None:
    """Users who do not wait, a leaf that sees it, and each metric that does not move."""
    calm = msgspec.structs.replace(
        result, client=result.client | {"during": result.client["before"]}
    )
    assert "the client's p95" in calm.failures[0]
    seeing = msgspec.structs.replace(result.leaf["during"], own_max_ms=300.0)
    assert (
        "own maximum"
        in msgspec.structs.replace(result, leaf=result.leaf | {"during": seeing}).failures[0]
    )
    for name in blind_spot.WANTED:
        still = msgspec.structs.replace(result.metrics[name], one_scrape_later=0.0)
        one = msgspec.structs.replace(result, metrics=result.metrics | {name: still})
        assert one.failures == [
            f"{blind_spot.METRICS[name]} is still in its idle range one scrape later"
        ]
        assert one.failures[0] in said(one)


def test_the_picture_is_drawn(result: blind_spot.Result, tmp_path: Path) -> None:
    """Also of metrics that were 0 while idle."""
    path = tmp_path / "blind-spot.png"
    blind_spot.draw(result, path, "caption")
    assert path.read_bytes().startswith(b"\x89PNG")
