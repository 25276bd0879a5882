"""The recorder."""

from __future__ import annotations

import pytest

from bench.confidence import curve, estimate
from bench.recorder import LAG_MS_MAX, VALUE_US_MAX, Phases, Recorder


def test_percentiles_are_those_of_the_values() -> None:
    """A thousand latencies of 1 to 1000 ms have the percentiles one expects."""
    recorder = Recorder()
    for latency_ms in range(1, 1001):
        recorder.record("complete", latency_ms / 1000)
    summary = recorder.summary()
    assert [summary.p50_ms, summary.p95_ms, summary.p99_ms, summary.max_ms] == pytest.approx(
        [500, 950, 990, 1000], rel=0.002
    )


def test_every_fate_is_counted_and_measured() -> None:
    """A timeout is counted as one, and its wait is in the histogram."""
    recorder = Recorder()
    recorder.record("complete", 0.001)
    recorder.record("timeout", 2)
    recorder.record("partial", 1)
    assert recorder.summary().fates == {"complete": 1, "partial": 1, "timeout": 1}
    assert recorder.summary().max_ms == pytest.approx(2000, rel=0.002)


def test_the_generators_own_lag_is_reported() -> None:
    """How late the generator was stands beside the latencies."""
    recorder = Recorder()
    recorder.record_lag(0.25)
    assert recorder.summary().lag_ms_p99 == pytest.approx(250, rel=0.002)


@pytest.mark.parametrize(
    ("late_ms", "valid"), [(LAG_MS_MAX * 0.9, True), (LAG_MS_MAX * 1.1, False)]
)
def test_a_run_that_fell_behind_is_not_valid(late_ms: float, valid: bool) -> None:
    """More than one request in a hundred was sent later than the limit: the run says so."""
    recorder = Recorder()
    for number in range(1000):
        recorder.record_lag(late_ms / 1000 if number < 11 else 0.0001)
    assert recorder.summary().valid is valid


def test_percentiles_have_the_intervals_of_their_order_statistics() -> None:
    """Those that the same values have in a list, but for the histogram's digits; open where too
    few requests were made.
    """
    recorder, latencies_s = Recorder(), [0.001 * n for n in range(1, 1001)]
    for latency_s in latencies_s:
        recorder.record("complete", latency_s)
    wanted = estimate(latencies_s, 95.0).times(1000.0)
    got = recorder.estimate_ms(95.0)
    assert (got.value, got.low) == pytest.approx((wanted.value, wanted.low), rel=0.002)
    assert recorder.summary().intervals_ms["p95"] == (got.low, got.high)
    assert recorder.summary().intervals_ms["p99.9"][1] is None


def test_the_distribution_can_be_drawn() -> None:
    """The same curve as of the values themselves, but for the histogram's digits."""
    recorder, latencies_ms = Recorder(), list(range(1, 1001))
    for latency_ms in latencies_ms:
        recorder.record("complete", latency_ms / 1000)
    wanted = curve(latencies_ms)
    assert [p for p, _ in recorder.curve_ms()] == [p for p, _ in wanted]
    assert [ms for _, ms in recorder.curve_ms()] == pytest.approx(
        [ms for _, ms in wanted], rel=0.01
    )
    assert Recorder().curve_ms() == []


@pytest.mark.parametrize(("latency_s", "ms"), [(-1, 0.001), (0, 0.001), (1e9, VALUE_US_MAX / 1000)])
def test_values_past_the_scale_count_as_its_ends(latency_s: float, ms: float) -> None:
    """Nothing is dropped for being out of range."""
    recorder = Recorder()
    recorder.record("complete", latency_s)
    assert recorder.summary().max_ms == pytest.approx(ms, rel=0.002)


def test_an_empty_run_has_a_summary() -> None:
    """No request is no error."""
    assert Recorder().summary().requests == 0


def test_recorders_add_up() -> None:
    """Two halves of a run come to the whole: latencies, lags, fates and what was not sent."""
    whole, halves = Recorder(), (Recorder(), Recorder())
    for number in range(100):
        for recorder in (whole, halves[number % 2]):
            recorder.record("complete" if number % 3 else "error", number / 100)
            recorder.record_lag(number / 1e4)
    for recorder in (whole, halves[0]):
        recorder.record_unsent()
    halves[0].add(halves[1])
    assert halves[0].summary() == whole.summary()


def test_a_request_belongs_to_the_phase_it_was_meant_for() -> None:
    """A phase begins at its time, that time included."""
    phases = Phases({"before": 0, "after": 10})
    assert phases.at(0) is phases.at(9.99) is phases.recorders["before"]
    assert phases.at(10) is phases.at(1e6) is phases.recorders["after"]


@pytest.mark.parametrize("begins_s", [{}, {"late": 1}, {"a": 0, "b": 2, "c": 1}])
def test_phases_cover_the_run(begins_s: dict[str, float]) -> None:
    """Phases begin at 0 and ascend."""
    with pytest.raises(ValueError, match="ascend"):
        Phases(begins_s)
