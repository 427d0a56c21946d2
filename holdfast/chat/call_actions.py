"""What changes calls: one transaction each. Nobody is in two calls: a row per person in one says so."""

from __future__ import annotations

from msgspec import Struct

from holdfast.accounts import queries as accounts
from holdfast.chat.calls import LIVE, Act, CallState, Why, after
from holdfast.chat.model import Call
from holdfast.store import Query, Snapshot, Statement, Transaction

_CALL = "SELECT id, caller, callee, kind, state, made_ms, accepted_ms, ended_ms, why FROM call_record"

CALL = Query(Call, f"{_CALL} WHERE id = :id")
LOCK_CALL = Query(Call, f"{_CALL} WHERE id = :id FOR UPDATE")
ADD_CALL = Statement(
    "INSERT INTO call_record (id, caller, callee, kind, state, made_ms, accepted_ms, ended_ms, why)"
    " VALUES (:id, :caller, :callee, :kind, :state, :now, NULL, :ended, :why)"
)
TAKE_PART = Query(
    int,
    "INSERT INTO call_party (user_id, call_id, seen_ms) VALUES (:user, :call, :now)"
    " ON CONFLICT (user_id) DO NOTHING RETURNING 1",
)
LET_GO = Statement("DELETE FROM call_party WHERE call_id = :call")
ACCEPT = Statement("UPDATE call_record SET state = :state, accepted_ms = :now WHERE id = :id")
FINISH = Statement("UPDATE call_record SET state = :state, ended_ms = :now, why = :why WHERE id = :id")
SEEN = Statement("UPDATE call_party SET seen_ms = :now WHERE user_id = :user AND seen_ms < :now")
PARTIES = Query(int, "SELECT user_id FROM call_party")
LOST = Query(
    int,
    "SELECT DISTINCT p.call_id FROM call_party p JOIN call_record r ON r.id = p.call_id"
    " WHERE p.seen_ms < :lost OR (r.state = 1 AND r.made_ms < :rung)",
)
RECORDS = Query(
    Call,
    f"SELECT * FROM (SELECT * FROM ({_CALL} WHERE caller = :user AND id < :below ORDER BY id DESC LIMIT :limit) mine"
    f" UNION ALL SELECT * FROM ({_CALL} WHERE callee = :user AND id < :below ORDER BY id DESC LIMIT :limit) theirs"
    ") both_ways ORDER BY id DESC LIMIT :limit",
)


class NewCall(Struct, frozen=True):
    id: int
    caller: int
    callee: int
    kind: str
    made_ms: int


class Stepped(Struct, frozen=True):
    """A call as it stands after an act, and whether the act has changed it."""

    call: Call
    changed: bool


def invite(tx: Transaction, new: NewCall, *, reachable: bool) -> Why | None:
    """Begins to ring, or answers why not; then there is a record all the same, unless there is no such user."""
    if accounts.user(tx, new.callee) is None:
        return Why.NOT_FOUND
    if not reachable:
        _over(tx, new, CallState.OFFLINE, Why.OFFLINE)
        return Why.OFFLINE
    for user in sorted((new.caller, new.callee)):
        if tx.row(TAKE_PART, user=user, call=new.id, now=new.made_ms) is None:
            tx.execute(LET_GO, call=new.id)
            _over(tx, new, CallState.BUSY, Why.BUSY)
            return Why.BUSY
    _add(tx, new, CallState.RINGING, None, None)
    return None


def step(tx: Transaction, call_id: int, act: Act, user: int, now_ms: int, why: str | None) -> Stepped | Why:
    """Somebody accepts, rejects, cancels, ends; or time is up."""
    call = tx.row(LOCK_CALL, id=call_id)
    if call is None:
        return Why.NOT_FOUND
    state = after(call, act, user)
    if isinstance(state, Why):
        return state
    if state is None:
        return Stepped(call, False)
    if state in LIVE:
        tx.execute(ACCEPT, id=call_id, state=state, now=now_ms)
    else:
        tx.execute(FINISH, id=call_id, state=state, now=now_ms, why=why)
        tx.execute(LET_GO, call=call_id)
    return Stepped(tx.one(CALL, id=call_id), True)


def see(tx: Transaction, users: list[int], now_ms: int) -> None:
    """These are in calls, and connected."""
    for user in sorted(users):
        tx.execute(SEEN, user=user, now=now_ms)


def call(view: Snapshot, call_id: int) -> Call | None:
    return view.row(CALL, id=call_id)


def parties(view: Snapshot) -> list[int]:
    return view.rows(PARTIES)


def lost(view: Snapshot, lost_before: int, rung_before: int) -> list[int]:
    """Calls with a side that nobody has seen for long, or that have rung for too long."""
    return view.rows(LOST, lost=lost_before, rung=rung_before)


def records(view: Snapshot, user: int, below: int, limit: int) -> list[Call]:
    return view.rows(RECORDS, user=user, below=below, limit=limit)


def _over(tx: Transaction, new: NewCall, state: CallState, why: Why) -> None:
    _add(tx, new, state, new.made_ms, why)


def _add(tx: Transaction, new: NewCall, state: CallState, ended_ms: int | None, why: Why | None) -> None:
    tx.execute(
        ADD_CALL,
        id=new.id,
        caller=new.caller,
        callee=new.callee,
        kind=new.kind,
        state=state,
        now=new.made_ms,
        ended=ended_ms,
        why=None if why is None else why.value,
    )
