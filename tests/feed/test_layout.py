"""The stretches that a transaction takes: nothing overlaps, nothing is taken that is not needed by somebody."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.feed.layout import Shape, lay_out

SHAPES = st.lists(
    st.builds(
        Shape,
        seq=st.integers(0, 20),
        cseq=st.integers(0, 20),
        changes=st.integers(0, 5),
        joined=st.booleans(),
        left=st.booleans(),
    ),
    max_size=5,
)


@given(SHAPES)
def test_no_position_is_given_twice(shapes: list[Shape]) -> None:
    layout = lay_out(shapes)
    taken: list[int] = []
    for shape, place in zip(shapes, layout.places, strict=True):
        changes = range(place.pos, place.pos + shape.changes)
        taken += changes
        if shape.joined:
            was_there = [place.join_base + seq for seq in range(1, shape.seq + 1)]
            new = [place.join_base + seq for seq in range(shape.seq + 1, shape.seq + 1 + shape.changes)]
            assert new == list(changes)  # the newcomer and the members see a change at one position
            taken += was_there
        assert all(position < layout.staying for position in taken if position in changes)
    for shape, place in zip(shapes, layout.places, strict=True):
        if shape.left:
            gone = [place.leave_base + cseq for cseq in range(1, shape.cseq + shape.changes + 1)]
            assert not gone or gone[0] >= layout.staying
            taken += gone
    assert sorted(taken) == list(range(len(taken)))
    assert len(taken) == layout.leaving
