"""Rows become bytes and come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.keeping.rows import BYTES, ROWS, chunks, packed, unpacked

VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.binary(max_size=40)
)


@given(st.lists(st.lists(VALUES, max_size=5), max_size=30))
def test_what_is_unpacked_is_what_was_packed_type_for_type(rows: list[list[object]]) -> None:
    found = unpacked(packed(rows))  # type: ignore[arg-type]
    assert found == rows
    assert [[type(value) for value in row] for row in found] == [
        [type(value) for value in row] for row in rows
    ]


@given(st.lists(st.integers(0, BYTES // 2), max_size=40), st.integers(0, 3 * ROWS))
def test_chunks_are_bounded_and_lose_nothing(sizes: list[int], small: int) -> None:
    rows = [(number, b"x" * size) for number, size in enumerate(sizes)]
    rows += [(number, b"") for number in range(small)]
    found = list(chunks(rows))
    assert [row for chunk in found for row in chunk] == rows
    for chunk in found:
        assert 1 <= len(chunk) <= ROWS
        assert sum(len(content) for _, content in chunk[:-1]) < BYTES  # type: ignore[arg-type, misc]


@given(st.binary(max_size=200))
def test_bytes_that_are_no_rows_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not rows"):
        unpacked(data)
