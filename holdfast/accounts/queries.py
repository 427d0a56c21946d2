"""The SQL of accounts, and the reads made of it.

Locks are taken in this order: user, refresh chain, sv counter.
"""

from __future__ import annotations

from msgspec import Struct

from holdfast.accounts.model import Credentials, RefreshState, User
from holdfast.store import Query, Snapshot, Statement

CHANGES_PAGE = 1_000

ADD_USER = Statement(
    "INSERT INTO users (id, name, name_key, password_hash, password_sv, is_admin, disabled, sv, sv_revision,"
    " made_ms) VALUES (:id, :name, :key, :password_hash, 1, :is_admin, :disabled, 1, 0, :now)"
    " ON CONFLICT (name_key) DO NOTHING"
)
USER = Query(User, "SELECT id, name, is_admin, disabled, sv FROM users WHERE id = :id")
USER_BY_KEY = Query(User, "SELECT id, name, is_admin, disabled, sv FROM users WHERE name_key = :key")
USERS_PAGE = Query(
    User, "SELECT id, name, is_admin, disabled, sv FROM users WHERE id > :above ORDER BY id LIMIT :limit"
)
_CREDENTIALS = "SELECT id, name, disabled, sv, password_sv, password_hash FROM users"
CREDENTIALS = Query(Credentials, f"{_CREDENTIALS} WHERE name_key = :key")
CREDENTIALS_BY_ID = Query(Credentials, f"{_CREDENTIALS} WHERE id = :id")
LOCK_USER = Query(Credentials, f"{_CREDENTIALS} WHERE id = :id FOR NO KEY UPDATE")
SET_PASSWORD = Statement("UPDATE users SET password_hash = :hash, password_sv = sv WHERE id = :id")
RENEW_HASH = Statement("UPDATE users SET password_hash = :new WHERE id = :id AND password_hash = :old")
SET_DISABLED = Statement("UPDATE users SET disabled = :disabled WHERE id = :id")

JUMP_SV = Statement("UPDATE users SET sv = sv + :jump, password_sv = password_sv + :jump")
JUMP_CHAINS = Statement("UPDATE refresh_chain SET sv = sv + :jump")
NEXT_REVISION = Query(int, "UPDATE sv_counter SET revision = revision + 1 WHERE id = 1 RETURNING revision")
RAISE_SV = Query(int, "UPDATE users SET sv = sv + 1, sv_revision = :revision WHERE id = :id RETURNING sv")
REVISION = Query(int, "SELECT revision FROM sv_counter WHERE id = 1")

ADD_CHAIN = Statement(
    "INSERT INTO refresh_chain (id, user_id, sv, made_ms, expires_ms)"
    " VALUES (:id, :user_id, :sv, :now, :expires)"
)
LOCK_CHAIN = Query(int, "SELECT id FROM refresh_chain WHERE id = :id FOR UPDATE")
END_CHAIN = Statement(
    "UPDATE refresh_chain SET ended_ms = :now, expires_ms = :now WHERE id = :id AND ended_ms IS NULL"
)
PROLONG_CHAIN = Statement("UPDATE refresh_chain SET expires_ms = :expires WHERE id = :id")

ADD_TOKEN = Statement(
    "INSERT INTO refresh_token (hash, chain_id, expires_ms) VALUES (:hash, :chain_id, :expires)"
)
CHAIN_OF_TOKEN = Query(int, "SELECT chain_id FROM refresh_token WHERE hash = :hash")
REFRESH_STATE = Query(
    RefreshState,
    """SELECT t.chain_id, t.expires_ms, t.exchanged_ms, c.sv, c.ended_ms, u.id, u.name, u.sv, u.disabled
    FROM refresh_token t JOIN refresh_chain c ON c.id = t.chain_id JOIN users u ON u.id = c.user_id
    WHERE t.hash = :hash""",
)
MARK_EXCHANGED = Statement(
    "UPDATE refresh_token SET exchanged_ms = :now WHERE chain_id = :chain_id AND exchanged_ms IS NULL"
)

# Sweeps step over rows that a refresh has in its hands: it will be back.
SWEEP_TOKENS = Statement(
    """DELETE FROM refresh_token WHERE hash IN (
    SELECT hash FROM refresh_token WHERE expires_ms <= :now ORDER BY expires_ms LIMIT :limit
    FOR UPDATE SKIP LOCKED)"""
)
CHAIN_TO_SWEEP = Query(
    int,
    "SELECT id FROM refresh_chain WHERE expires_ms <= :now ORDER BY expires_ms LIMIT :limit"
    " FOR UPDATE SKIP LOCKED",
)
SWEEP_TOKENS_OF_CHAINS = Statement(
    """DELETE FROM refresh_token WHERE hash IN (
    SELECT hash FROM refresh_token WHERE chain_id = ANY(:chains) LIMIT :limit)"""
)
SWEEP_CHAINS = Statement(
    "DELETE FROM refresh_chain WHERE id = ANY(:chains)"
    " AND NOT EXISTS (SELECT 1 FROM refresh_token t WHERE t.chain_id = refresh_chain.id)"
)

KEEP_SECRET = Statement("INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING")
SECRET = Query(str, "SELECT value FROM meta WHERE name = :name")


class Change(Struct, frozen=True):
    """A raised sv, and its place in the order in which they were raised."""

    revision: int
    user_id: int
    sv: int


CHANGES = Query(
    Change,
    "SELECT sv_revision, id, sv FROM users WHERE sv_revision > :above ORDER BY sv_revision LIMIT :limit",
)


def user(view: Snapshot, user_id: int) -> User | None:
    return view.row(USER, id=user_id)


def user_by_key(view: Snapshot, key: str) -> User | None:
    return view.row(USER_BY_KEY, key=key)


def users_page(view: Snapshot, above: int, limit: int) -> list[User]:
    return view.rows(USERS_PAGE, above=above, limit=limit)


def credentials(view: Snapshot, key: str) -> Credentials | None:
    return view.row(CREDENTIALS, key=key)


def credentials_by_id(view: Snapshot, user_id: int) -> Credentials | None:
    return view.row(CREDENTIALS_BY_ID, id=user_id)


def knows_token(view: Snapshot, token_hash: bytes) -> bool:
    return view.row(CHAIN_OF_TOKEN, hash=token_hash) is not None


def revision(view: Snapshot) -> int:
    return view.one(REVISION)


def changes(view: Snapshot, above: int) -> list[Change]:
    return view.rows(CHANGES, above=above, limit=CHANGES_PAGE)
