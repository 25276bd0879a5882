"""Reading a leaf's metrics back."""

from __future__ import annotations

from bench.leaf_metrics import parse_leaf

TEXT = """\
# TYPE hedgerow_leaf_loop_lag_seconds histogram
hedgerow_leaf_loop_lag_seconds_bucket{{le="0.001024"}} {quick}
hedgerow_leaf_loop_lag_seconds_bucket{{le="0.002048"}} {all}
hedgerow_leaf_loop_lag_seconds_bucket{{le="+Inf"}} {all}
hedgerow_leaf_loop_lag_seconds_count {all}
hedgerow_leaf_loop_lag_seconds_sum 0.1
# TYPE hedgerow_leaf_service_seconds histogram
hedgerow_leaf_service_seconds_bucket{{le="+Inf"}} {all}
hedgerow_leaf_service_seconds_count {all}
hedgerow_leaf_service_seconds_sum {all}.5
# TYPE hedgerow_leaf_wasted_seconds counter
hedgerow_leaf_wasted_seconds_total {quick}.25
"""


def test_what_was_added_in_a_span_is_a_difference() -> None:
    """Work, waste and lags between two looks; of a lag, the bound that it did not exceed."""
    before = parse_leaf(TEXT.format(quick=100, all=100))
    after = parse_leaf(TEXT.format(quick=198, all=200))
    span = after.since(before)
    assert (span.service_s, span.wasted_s) == (100.0, 98.0)
    assert span.loop_lag_ms(97) == 1.024
    assert span.loop_lag_ms(99) == 2.048
    assert (span + span).lag.total() == 200
    assert before.since(before).loop_lag_ms(99) == 0.0
