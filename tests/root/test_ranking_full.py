"""A leaf that was full: for as long as it says, others are asked."""

from __future__ import annotations

from random import Random

from root.ranking import Leaf, choose
from tests.root.conftest import busy


def test_a_full_leaf_is_chosen_when_it_has_said_it_would_not_be() -> None:
    """Until then only where the others are as full, whatever its queue and latency; a shorter
    hint does not shorten it.
    """
    quick, slow = busy(Leaf("a", 0.0, 0.001)), busy(Leaf("b", 0.0, 1.0))
    slow.outstanding = 100
    quick.full(0.5, 100.0)
    quick.full(0.1, 100.0)
    assert choose([quick, slow], [], Random(1), 100.4) is slow
    assert choose([quick, slow], [], Random(1), 100.5) is quick
    quick.full(1.0, 101.0)
    slow.full(1.0, 101.0)
    assert choose([quick, slow], [], Random(1), 101.5) is quick
    assert choose([quick], [], Random(1), 101.5) is quick
