"""What changes accounts: one transaction each. Secrets come in as hashes; randomness and time are handed in."""

from __future__ import annotations

from holdfast.accounts import queries as sql
from holdfast.accounts.model import Credentials, FreshToken, Grant, NewUser, SessionsEnded, User
from holdfast.accounts.rules import Exchange, exchange, name_key
from holdfast.errors import NameTaken, NotFound, SessionInvalid, WrongCredentials
from holdfast.store import Transaction

SWEEP_ROWS = 1_000
SWEEP_CHAINS = 100
RESTORE_JUMP = 1_000_000  # no user logs out that often between a backup and its restore
TOKEN_SECRET = "accounts.token_secret"  # noqa: S105 - its name in `meta`


def add_user(tx: Transaction, new: NewUser) -> User:
    added = tx.execute(
        sql.ADD_USER,
        id=new.id,
        name=new.name,
        key=name_key(new.name),
        password_hash=new.password_hash,
        is_admin=new.is_admin,
        disabled=False,
        now=new.made_ms,
    )
    if not added:
        raise NameTaken
    return User(new.id, new.name, new.is_admin, False, 1)


def log_in(
    tx: Transaction,
    seen: Credentials,
    chain_id: int,
    token: FreshToken,
    *,
    renewed_hash: str | None = None,
    single_device: bool = False,
) -> Grant:
    """Begins a chain for the user whose password was found right, unless it changed since it was looked at."""
    user = tx.row(sql.LOCK_USER, id=seen.user_id)
    if user is None or user.disabled or user.password_sv != seen.password_sv:
        raise WrongCredentials
    if renewed_hash is not None:
        tx.execute(sql.RENEW_HASH, id=user.user_id, old=seen.password_hash, new=renewed_hash)
    sv = _raise_sv(tx, user.user_id) if single_device else user.sv
    return _begin_chain(tx, Grant(user.user_id, user.name, sv), chain_id, token)


def refresh(
    tx: Transaction, presented: bytes, fresh: FreshToken, grace_ms: int
) -> tuple[Exchange, Grant | None]:
    """Exchanges a refresh token. A refusal is an answer, not an error: ending a chain must be committed."""
    chain_id = tx.row(sql.CHAIN_OF_TOKEN, hash=presented)
    if chain_id is None or tx.row(sql.LOCK_CHAIN, id=chain_id) is None:
        return Exchange.ENDED, None
    # a statement of its own, after the lock: on PostgreSQL the statement that waited for the lock would still
    # show the token as it was before the rival's commit, and both would take it for the newest
    state = tx.row(sql.REFRESH_STATE, hash=presented)
    if state is None:
        return Exchange.ENDED, None
    decision = exchange(state, fresh.made_ms, grace_ms)
    if decision is Exchange.REUSED:
        tx.execute(sql.END_CHAIN, id=chain_id, now=fresh.made_ms)
    if decision not in (Exchange.NEXT, Exchange.AGAIN):
        return decision, None
    if decision is Exchange.NEXT:
        # all of the newest, not this one alone: whoever got a twin of it has the grace to come, and no longer
        tx.execute(sql.MARK_EXCHANGED, chain_id=chain_id, now=fresh.made_ms)
    tx.execute(sql.ADD_TOKEN, hash=fresh.hash, chain_id=chain_id, expires=fresh.expires_ms)
    tx.execute(sql.PROLONG_CHAIN, id=chain_id, expires=fresh.expires_ms)
    return decision, Grant(state.user_id, state.user_name, state.user_sv)


def log_out(tx: Transaction, presented: bytes, now_ms: int) -> None:
    """Ends the chain of this refresh token, whatever the token is still good for; again is harmless."""
    chain_id = tx.row(sql.CHAIN_OF_TOKEN, hash=presented)
    if chain_id is not None:
        tx.execute(sql.END_CHAIN, id=chain_id, now=now_ms)


def log_out_everywhere(tx: Transaction, user_id: int, seen_sv: int | None = None) -> None:
    """Ends every session; with `seen_sv` only those of that time, so that asking twice ends no new one."""
    user = _locked(tx, user_id)
    if seen_sv is None or user.sv == seen_sv:
        _raise_sv(tx, user_id)


def change_password(
    tx: Transaction, seen: Credentials, new_hash: str, chain_id: int, token: FreshToken
) -> Grant:
    """Ends every session and begins a new one for whoever changed the password."""
    user = _locked(tx, seen.user_id)
    if user.disabled or user.sv != seen.sv:
        raise SessionInvalid
    sv = set_password(tx, seen.user_id, new_hash)
    return _begin_chain(tx, Grant(user.user_id, user.name, sv), chain_id, token)


def set_password(tx: Transaction, user_id: int, new_hash: str) -> int:
    _locked(tx, user_id)
    sv = _raise_sv(tx, user_id)
    tx.execute(sql.SET_PASSWORD, id=user_id, hash=new_hash)
    return sv


def set_disabled(tx: Transaction, user_id: int, *, disabled: bool) -> None:
    """A user who is disabled loses every session; who is enabled again has to log in."""
    if _locked(tx, user_id).disabled == disabled:
        return
    tx.execute(sql.SET_DISABLED, id=user_id, disabled=disabled)
    if disabled:
        _raise_sv(tx, user_id)


def sweep_tokens(tx: Transaction, now_ms: int) -> int:
    """Deletes refresh tokens that have expired, a turn's worth."""
    return tx.execute(sql.SWEEP_TOKENS, now=now_ms, limit=SWEEP_ROWS)


def sweep_chains(tx: Transaction, now_ms: int) -> int:
    """Deletes chains that have ended or expired, with their tokens, a turn's worth."""
    chains = tx.rows(sql.CHAIN_TO_SWEEP, now=now_ms, limit=SWEEP_CHAINS)
    if not chains:
        return 0
    tokens = tx.execute(sql.SWEEP_TOKENS_OF_CHAINS, chains=chains, limit=SWEEP_ROWS)
    return tokens + tx.execute(sql.SWEEP_CHAINS, chains=chains)


def keep_secret(tx: Transaction, proposed: str) -> str:
    """The secret of this store's tokens: the first proposed stays, whoever else comes at the same time."""
    tx.execute(sql.KEEP_SECRET, name=TOKEN_SECRET, value=proposed)
    return tx.one(sql.SECRET, name=TOKEN_SECRET)


def outdate_access_tokens(tx: Transaction) -> None:
    """For `restore`: an sv that was raised since the backup must not be given out a second time.

    Users and chains jump together, beyond every sv of the lost time: access tokens end, refresh tokens go on.
    """
    for statement in (sql.JUMP_SV, sql.JUMP_CHAINS):
        tx.execute(statement, jump=RESTORE_JUMP)


def _locked(tx: Transaction, user_id: int) -> Credentials:
    user = tx.row(sql.LOCK_USER, id=user_id)
    if user is None:
        raise NotFound("there is no such user")
    return user


def _raise_sv(tx: Transaction, user_id: int) -> int:
    revision = tx.one(sql.NEXT_REVISION)
    sv = tx.one(sql.RAISE_SV, id=user_id, revision=revision)
    tx.after(SessionsEnded(user_id, sv))
    return sv


def _begin_chain(tx: Transaction, grant: Grant, chain_id: int, token: FreshToken) -> Grant:
    tx.execute(
        sql.ADD_CHAIN,
        id=chain_id,
        user_id=grant.user_id,
        sv=grant.sv,
        now=token.made_ms,
        expires=token.expires_ms,
    )
    tx.execute(sql.ADD_TOKEN, hash=token.hash, chain_id=chain_id, expires=token.expires_ms)
    return grant
