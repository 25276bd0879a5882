"""Frames as bytes: whatever the leaf has to say fits, and says all of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaf import frames
from leaf.protocol import FRAME_BYTES_MAX, LeafFrame, ranked

READ = msgspec.json.Decoder(LeafFrame)

times = st.integers(0, 2**40)
legs = st.integers(0, 2**53 - 1)
hits = st.lists(
    st.tuples(
        legs,
        times,
        times,
        st.integers(0, 10**9),
        st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
        st.lists(st.integers(0, 2**63 - 1), max_size=3),
    ).map(lambda reply: (*reply[:4], *ranked(*reply[4:]))),
    max_size=20,
)
texts = st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace").decode())
refusals = st.lists(st.tuples(legs, times, times, st.just("error"), texts), max_size=20)


@given(hits=hits, refusals=refusals, limit=st.integers(400, 2_000))
def test_replies_are_split_over_frames_and_none_is_lost(
    hits: list[tuple[Any, ...]], refusals: list[tuple[Any, ...]], limit: int
) -> None:
    """No frame is over the limit; each leg is in exactly one of them; one too large is refused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "FRAME_BYTES_MAX", limit + 1_000)
        written = frames.write_replies(hits, (), refusals)
    read = [READ.decode(frame) for frame in written]
    assert all(len(frame) <= limit + 1_000 for frame in written)
    answered = [hit.leg for frame in read for hit in frame.hits]
    answered += [refusal.leg for frame in read for refusal in frame.refusals]
    assert sorted(answered) == sorted(reply[0] for reply in (*hits, *refusals))


def test_an_answer_that_no_frame_can_hold_is_refused() -> None:
    """One enormous answer becomes a refusal that says its size; its neighbours are sent."""
    large: tuple[Any, ...] = (1, 0, 1, [(7, 1.0, "id", {"body": "x" * FRAME_BYTES_MAX}, {})])
    small: tuple[Any, ...] = (2, 0, 1, [(8, 1.0, "id", {"body": "x"}, {})])
    read = [READ.decode(frame) for frame in frames.write_replies((), [large, small], ())]
    assert [one.leg for frame in read for one in frame.documents] == [2]
    refused = [refusal for frame in read for refusal in frame.refusals]
    assert [(refusal.leg, refusal.reason) for refusal in refused] == [(1, "error")]
    assert "bytes is more than a frame may have" in refused[0].detail


def test_large_integers_keep_their_digits() -> None:
    """Ordinals and ids above 2**53 arrive as they were."""
    written = frames.write_replies([(0, 0, 1, 1, *ranked([1.0], [2**63 - 1]))], (), ())
    assert READ.decode(written[0]).hits[0].read() == ([1.0], [2**63 - 1])
