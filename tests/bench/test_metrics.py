"""Reading exported metrics."""

from __future__ import annotations

from bench.metrics import counter

TEXT = """# TYPE x_attempts counter
x_attempts_total{kind="primary",fate="won"} 3.0
x_attempts_total{kind="hedge",fate="won"} 1.0
x_attempts_total{kind="hedge",fate="lost"} 2.0
x_attempts_created{kind="hedge",fate="lost"} 1.7e9
"""


def test_a_counter_is_summed_by_a_label() -> None:
    """Samples with the same value of the label add up; creation times are no samples."""
    assert counter(TEXT, "x_attempts", "fate") == {"won": 4, "lost": 2}


def test_an_unknown_counter_is_empty() -> None:
    """A counter that is not exported has no sums."""
    assert counter(TEXT, "x_other", "fate") == {}
