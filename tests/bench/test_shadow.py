"""What is forecast for hedging is what hedging then does."""

from __future__ import annotations

import pytest

from bench.experiments import shadow
from bench.simulation.study import Plan
from root.budget import burst_for
from root.rehearsal import EXTRA_LOADS


def test_the_forecast_comes_true() -> None:
    """Of a fan-out with siblings to draw from: cost and percentiles, for every budget."""
    result = shadow.run(Plan("tail-at-scale", leaves=30, queries=1500))
    assert result.forecast["requests"] == 1500
    assert list(result.arms) == ["off", *(f"adaptive@{load:g}" for load in EXTRA_LOADS)]
    assert result.forecast["off"]["p95"] == pytest.approx(result.arms["off"].all_leaves.p95, 0.01)
    for load in EXTRA_LOADS:
        said, did = result.forecast["arms"][f"adaptive@{load:g}"], result.arms[f"adaptive@{load:g}"]
        # The rehearsal begins with a full bucket and no price, hedging after its warm-up.
        assert abs(said["extra_load"] - did.extra_load) < 0.1 * load + burst_for(30) / (30 * 1500)
        assert said["p50"] == pytest.approx(did.all_leaves.p50, rel=0.1)
        assert said["p95"] == pytest.approx(did.all_leaves.p95, rel=0.15)
    assert result.forecast["recommendation"]["hedge"] == "adaptive"
