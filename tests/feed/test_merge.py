"""The lazy merge: the same as sorting everything, without reading everything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.feed.merge import FIRST_PIECE, merged
from holdfast.feed.ranges import Entry


class Listed:
    """Versions in a list; its bound may lie below the first one, as a range's may."""

    def __init__(self, versions: list[int], slack: int = 0) -> None:
        self.entries = [Entry(version, 1, 2, str(version), True, True) for version in versions]
        self.bound = versions[0] - slack if versions else slack
        self.ended = False
        self.read_so_far = 0

    def read(self, limit: int) -> list[Entry]:
        piece = self.entries[self.read_so_far : self.read_so_far + limit]
        self.read_so_far += len(piece)
        self.ended = len(piece) < limit
        return piece


VERSIONS = st.lists(st.integers(100, 400), unique=True, max_size=120)


@given(
    VERSIONS, st.lists(st.integers(0, 6), min_size=120, max_size=120), st.integers(0, 90), st.integers(1, 130)
)
def test_it_is_what_sorting_would_give(
    versions: list[int], owners: list[int], slack: int, limit: int
) -> None:
    shares: list[list[int]] = [[] for _ in range(7)]
    for version, owner in zip(sorted(versions), owners, strict=False):
        shares[owner].append(version)
    found = merged([Listed(share, slack) for share in shares], limit)
    assert [entry.version for entry in found] == sorted(versions)[:limit]


def test_a_source_that_begins_after_the_page_is_never_read() -> None:
    near, far = Listed(list(range(1, 200))), Listed(list(range(500, 700)))
    assert len(merged([near, far], 101)) == 101
    assert far.read_so_far == 0


def test_fifty_sources_that_interleave_are_read_a_little_each() -> None:
    sources = [Listed(list(range(1 + n, 50_000, 50))) for n in range(50)]
    assert [entry.version for entry in merged(sources, 101)] == list(range(1, 102))
    assert sum(source.read_so_far for source in sources) <= 50 * FIRST_PIECE
