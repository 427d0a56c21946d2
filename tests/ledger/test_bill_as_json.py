"""The quick spelling of a bill is the bill's spelling."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from holdfast.ledger.model import BillRow, StoredBill, as_json, bill_as_json
from holdfast.ledger.rules import checked_money

ids = st.text("0123456789abcdefghijklmnopqrstuv", min_size=20, max_size=20)
big = st.integers(1, 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
moneys = st.decimals(-(10**10), 10**10, places=4).map(checked_money) | st.sampled_from(
    ["0", "0.00", "-1", "1e3"]
).map(lambda text: checked_money(Decimal(text)))
moments = st.integers(0, 4_102_444_800_000)
rows = st.tuples(
    ids, big, big, moneys, big, texts, st.just("2026-02-18T10:00:00+08:00"), st.none() | texts,
    st.lists(ids, max_size=3).map(" ".join), moments, moments, st.none(),
)  # fmt: skip


@given(rows, ids, st.sampled_from(["add", "update"]), big)
def test_a_bill_on_a_page_is_spelled_as_everywhere(
    row: BillRow, book: str, action: str, version: int
) -> None:
    shown = StoredBill(*row).shown(book, action=action, version=version)  # type: ignore[arg-type]
    assert bill_as_json(row, book, action, version) == as_json(shown)  # type: ignore[arg-type]


@given(rows, ids)
def test_of_one_that_was_not_changed_too(row: BillRow, book: str) -> None:
    same = (*row[:10], row[9], None)
    assert bill_as_json(same, book, "add", 1) == as_json(
        StoredBill(*same).shown(book, action="add", version=1)
    )
