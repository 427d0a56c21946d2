"""What changes groups and who is in them: one transaction each, the conversation locked first.

A join or a leave makes the next revision of the membership. Whoever joins starts at the present.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from holdfast.accounts import queries as accounts
from holdfast.chat import group_queries as groups
from holdfast.chat import queries as sql
from holdfast.chat import rules
from holdfast.chat.errors import (
    GroupFull,
    GroupNotFound,
    MemberNotFound,
    OwnerStays,
    RoleTooLow,
    UserNotFound,
)
from holdfast.chat.model import Gone, Group, Kind, Member, Role
from holdfast.chat.queries import Locked
from holdfast.errors import AlreadyThere
from holdfast.http.idempotency import Key, once
from holdfast.store import Transaction


class NewGroup(Struct, frozen=True):
    """A group about to be made. `codes`: one of them will be free."""

    id: int
    name: str
    owner: int
    others: tuple[int, ...]
    codes: tuple[str, ...]
    made_ms: int


def create(tx: Transaction, new: NewGroup, most: int) -> int:
    members = sorted({new.owner, *new.others})
    if len(members) > most:
        raise GroupFull
    for user in members:
        if accounts.user(tx, user) is None:
            raise UserNotFound(f"There is no user {user}.")
    tx.execute(sql.ADD_CONVERSATION, id=new.id, kind=Kind.GROUP, members=len(members), now=new.made_ms)
    for code in new.codes:
        if tx.row(groups.ADD_GROUP, id=new.id, name=new.name, code=code, now=new.made_ms) is not None:
            break
    else:
        raise AlreadyThere
    for user in members:
        role = Role.OWNER if user == new.owner else Role.MEMBER
        tx.row(sql.ADD_MEMBER, conversation=new.id, user=user, role=role, now=new.made_ms, head=0)
    return new.id


def create_once(tx: Transaction, key: Key | None, new: NewGroup, most: int) -> int:
    """…or what this Idempotency-Key was answered before."""
    return once(tx, key, new.made_ms, int, lambda: create(tx, new, most))


def join(tx: Transaction, code: str, user: int, now_ms: int, most: int) -> int:
    """Whoever is in it already is answered the same."""
    group = tx.row(groups.GROUP_OF_CODE, code=code)
    if group is None:
        raise GroupNotFound
    locked = tx.one(sql.LOCK, id=group)
    if tx.row(groups.GROUP_OF_CODE, code=code) != group:
        raise GroupNotFound  # the code was reset while we waited for the lock
    if tx.row(sql.MEMBER, conversation=group, user=user) is not None:
        return group
    if locked.members >= most:
        raise GroupFull
    tx.row(sql.ADD_MEMBER, conversation=group, user=user, role=Role.MEMBER, now=now_ms, head=locked.head)
    tx.execute(groups.NEXT_REVISION, id=group, members=locked.members + 1)
    return group


def leave(tx: Transaction, group: int, user: int) -> None:
    """Whoever is not in it has left it. The last one, its owner, leaves an empty group behind."""
    locked = _lock(tx, group)
    member = tx.row(sql.MEMBER, conversation=group, user=user)
    if member is None:
        return
    if member.role == Role.OWNER and locked.members > 1:
        raise OwnerStays
    _remove(tx, group, locked, user)


def kick(tx: Transaction, group: int, actor: int, user: int) -> None:
    locked = _lock(tx, group)
    mine, theirs = _two(tx, group, actor, user)
    _require(rules.may_govern(mine.role, theirs.role))
    _remove(tx, group, locked, user)


def set_admin(tx: Transaction, group: int, actor: int, user: int, *, is_admin: bool) -> None:
    _lock(tx, group)
    mine, theirs = _two(tx, group, actor, user)
    _require(mine.role == Role.OWNER and theirs.role != Role.OWNER)
    role = Role.ADMIN if is_admin else Role.MEMBER
    tx.execute(groups.SET_ROLE, conversation=group, user=user, role=role)


def mute(tx: Transaction, group: int, actor: int, user: int, until_ms: int) -> None:
    _lock(tx, group)
    mine, theirs = _two(tx, group, actor, user)
    _require(rules.may_govern(mine.role, theirs.role))
    tx.execute(groups.MUTE, conversation=group, user=user, until=until_ms)


def transfer(tx: Transaction, group: int, actor: int, user: int) -> None:
    """The owner hands the group over, and is an ordinary member from then on. Again is harmless."""
    _lock(tx, group)
    mine, theirs = _two(tx, group, actor, user)
    _require(mine.role == Role.OWNER)
    if actor == user:
        return
    for member, role in sorted(((actor, Role.MEMBER), (user, Role.OWNER))):
        tx.execute(groups.SET_ROLE, conversation=group, user=member, role=role)
    if theirs.muted_until_ms:
        tx.execute(groups.MUTE, conversation=group, user=user, until=0)


def reset_code(tx: Transaction, group: int, actor: int, codes: Sequence[str]) -> str:
    """The old code lets nobody in any more."""
    _lock(tx, group)
    mine = _member(tx, group, actor)
    _require(mine.role >= Role.ADMIN)
    for code in codes:
        if tx.row(groups.GROUP_OF_CODE, code=code) is None:
            tx.execute(groups.SET_CODE, id=group, code=code)
            return code
    raise AlreadyThere


def group_for(tx: Transaction, group: int) -> Group:
    return tx.one(groups.GROUP, id=group)


def _lock(tx: Transaction, group: int) -> Locked:
    locked = tx.row(sql.LOCK, id=group)
    if locked is None or locked.kind != Kind.GROUP:
        raise GroupNotFound
    return locked


def _member(tx: Transaction, group: int, user: int) -> Member:
    """The caller; to whoever is not in it the group does not exist."""
    member = tx.row(sql.MEMBER, conversation=group, user=user)
    if member is None:
        raise GroupNotFound
    return member


def _two(tx: Transaction, group: int, actor: int, user: int) -> tuple[Member, Member]:
    mine = _member(tx, group, actor)
    theirs = tx.row(sql.MEMBER, conversation=group, user=user)
    if theirs is None:
        if mine.role < Role.ADMIN:
            raise RoleTooLow
        raise MemberNotFound
    return mine, theirs


def _require(allowed: bool) -> None:
    if not allowed:
        raise RoleTooLow


def _remove(tx: Transaction, group: int, locked: Locked, user: int) -> None:
    tx.execute(groups.REMOVE_MEMBER, conversation=group, user=user)
    tx.execute(groups.NEXT_REVISION, id=group, members=locked.members - 1)
    tx.after(Gone(group, (user,)))
