"""The progress bar."""

from __future__ import annotations

import pytest

from bench.progress import progress


def test_nobody_watching_sees_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Where stderr is no terminal nothing is drawn, and stdout is for results."""
    with progress("legs", 10) as advance:
        advance(4)
        advance(6)
    assert capfd.readouterr() == ("", "")


def test_a_watcher_sees_how_far_it_is(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On stderr: what is done, and how much of it."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress("legs", 10) as advance:
        advance(10)
    out, err = capfd.readouterr()
    assert out == ""
    assert "legs" in err
    assert "100%" in err
