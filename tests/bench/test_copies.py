"""What the experiments about copies compute and say, on small simulated runs."""

from __future__ import annotations

import contextlib
import os
import random
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from bench.experiments import fit_disks, mirrored_reads, pressure, tied, together
from bench.published import TIED_IDLE
from bench.simulation import disk_fit

TIED = replace(tied.SIMULATED, reads=2000, loads=(0.7,), roots=5)


def said(module: Any, result: Any) -> str:
    """What an experiment prints."""
    text = StringIO()
    module.show(result, Console(file=text, width=140))
    return text.getvalue()


@pytest.fixture(name="disks", scope="module")
def disks_fixture() -> tied.Result:
    """Tied requests on simulated disks."""
    return tied.simulate(TIED)


def test_tied_reads_gain_and_are_hardly_done_twice(disks: tied.Result) -> None:
    """In both environments and at both loads, at every percentile; never more than there is to
    gain, by much, and less than one read in a hundred is done twice.
    """
    assert [round(s.load, 1) for s in disks.settings] == [0.4, 0.7, 0.5, 0.7]
    for setting in disks.settings:
        arms = setting.arms
        assert {arm.summary.requests for arm in arms.values()} == {arms["off"].summary.requests}
        assert arms["tied"].extra_load == arms["tied"].duplicates < 0.01
        assert arms["off"].extra_load == 0.0
        assert arms["adaptive"].extra_load < 0.1
        for figure in ("p50", "p90", "p99"):
            assert 0.0 < setting.gains[figure] < setting.gains_max[figure] + 0.05


def test_what_falls_short_is_said_with_its_reason(disks: tied.Result) -> None:
    """A gain below the published one is never passed over."""
    lines = tied.verdicts(disks)
    text = said(tied, disks)
    for setting in disks.settings:
        wanted = tied.published_gains(tied.ENVIRONMENTS[setting.environment].published)
        short = [f for f in tied.FIGURES if setting.gains[f] < wanted[f]]
        where = f"{setting.environment} at {setting.load:.0%}"
        assert sum(line.startswith(f"{where}: p") for line in lines) == len(short)
    assert all(line.split(",", maxsplit=1)[0] in text for line in lines)
    assert tied.least_gain(TIED_IDLE, "p50") == pytest.approx(1 - 16.5 / 18.5)


def test_the_same_seed_gives_the_same_run() -> None:
    """To the last digit."""
    small = replace(TIED, reads=200, loads=())
    assert tied.simulate(small) == tied.simulate(small)


def test_hedged_reads_escape_the_disk_under_pressure() -> None:
    """In the tail, at the same rate; without pressure nothing changes by much."""
    result = mirrored_reads.simulate(replace(mirrored_reads.SIMULATED, reads=12_000))
    changes = result.changes["pressure"]
    assert changes["p99"] < -0.1
    assert changes["p99.95"] < -0.1
    assert abs(changes["rate_per_s"]) < 0.05
    assert abs(result.changes["one_reader"]["p99"]) < 0.1
    assert result.published_changes["pressure"]["p99"] == pytest.approx(-0.18, abs=0.005)
    assert "pressure, measured" in said(mirrored_reads, result)


def test_mirrored_reads_are_measured_in_published_time() -> None:
    """However fast the disks are made."""
    plan = replace(mirrored_reads.SIMULATED, reads=1500)
    figures = [
        mirrored_reads.simulate(replace(plan, scale=scale)).rows["one_reader"].figures
        for scale in (1.0, 0.5)
    ]
    for name, value in figures[0].items():
        assert figures[1][name] == pytest.approx(value, rel=0.2)
    assert figures[0]["rate_per_s"] == pytest.approx(103, rel=0.05)


def test_three_copies_gain_what_was_published_and_nobody_does_for_less() -> None:
    """A clairvoyant with as much extra work as adaptive may spend does not get below 4 s."""
    result = together.simulate(replace(together.SIMULATED, runs=1))
    assert result.gains["together"]["mean"] > 0.2
    assert result.arms["together"].extra_load == pytest.approx(2.0, abs=0.01)
    assert result.arms["adaptive"].extra_load < 0.16
    assert result.bound.p95_s == 4.0
    assert result.bound.extra_load_needed == pytest.approx(0.31, abs=0.02)
    assert result.mean_s["off"] == pytest.approx(2.8, abs=0.1)
    assert "extra work" in said(together, result)


def test_arrivals_ramp_up_and_stay() -> None:
    """From 5 to 50 a second in 30 s, then 50."""
    times_s = together.arrivals(together.SIMULATED, random.Random(1)).send_at_s
    assert len([t for t in times_s if t < 6.0]) == pytest.approx(6 * 9.5, rel=0.4)
    assert len([t for t in times_s if t >= 30.0]) == pytest.approx(1500, rel=0.1)
    assert max(times_s) < 60.0


def test_the_fit_explains_what_was_published_at_least_as_well_as_what_is_shipped() -> None:
    """Within the noise of a small trial; residuals are those of the eight figures."""
    result = fit_disks.run(1, 3_000)
    for name, shipped in result.shipped.items():
        assert result.fitted[name].error <= shipped.error < 0.2
        assert len(shipped.residuals) == 8
    assert result.fitted["idle"].disk.read_median_ms == pytest.approx(15.0, rel=0.2)
    assert "sort, fitted" in said(fit_disks, result)


def test_tied_copies_of_the_fit_s_model_never_wait_longer_than_one_alone() -> None:
    """On a disk that is idle, the copy changes nothing."""
    draws = disk_fit.Draws(1, 2000)
    idle = disk_fit.Disk(0.001, 15.0, 0.4)
    works = disk_fit.work_ms(idle, draws)
    for tied_too in (False, True):
        assert disk_fit.reads_ms(idle, draws, tied=tied_too) == pytest.approx(works)


def test_pinning_is_undone(tmp_path: Any) -> None:
    """Whatever happens meanwhile; and files can be dropped from memory without harm."""
    before = os.sched_getaffinity(0)
    with contextlib.suppress(RuntimeError), pressure.pinned(os.getpid(), {min(before)}):
        assert os.sched_getaffinity(0) == {min(before)}
        raise RuntimeError
    assert os.sched_getaffinity(0) == before
    file = tmp_path / "file"
    file.write_bytes(b"x" * 10_000)
    assert pressure.drop([file]) >= 0
    assert len(file.read_bytes()) == 10_000
