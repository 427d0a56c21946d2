"""`holdfast check` of accounts: nothing to say of a sound store, one sentence for each thing that is broken."""

from __future__ import annotations

import pytest

from holdfast.accounts import Accounts
from holdfast.accounts.check import verify_accounts
from holdfast.store import Snapshot, Statement, Transaction
from tests.accounts.conftest import HERE, MIGRATIONS, PASSWORD, OpenAccounts
from tests.conftest import OpenStore


def problems(view: Snapshot) -> list[str]:
    return list(verify_accounts(view))


def run(tx: Transaction, text: str) -> int:
    return tx.execute(Statement(text))


async def a_life(accounts: Accounts) -> None:
    """Users who log in, refresh, lose a device, change a password, are disabled."""
    for name in ("ann", "bob", "zoë"):
        user = await accounts.add_user(name, PASSWORD)
        kept, lost = [await accounts.log_in(name, PASSWORD, HERE) for _ in range(2)]
        await accounts.refresh(kept.refresh_token)
        await accounts.log_out(lost.refresh_token)
        await accounts.set_password(user, PASSWORD)
        await accounts.log_in(name, PASSWORD, HERE)
    await accounts.set_disabled(await accounts.user_named("bob"), disabled=True)


async def test_a_life_of_accounts_leaves_nothing_to_say(
    open_store: OpenStore, open_accounts: OpenAccounts
) -> None:
    async with open_store(MIGRATIONS) as db, open_accounts.on(db) as accounts:
        assert await db.read(problems) == []
        await a_life(accounts)
        assert await db.read(problems) == []
        await accounts.sweep()
        assert await db.read(problems) == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE users SET name_key = 'x' WHERE name = 'ann'", "cannot be found"),
        ("UPDATE users SET name = '123', name_key = '123' WHERE name = 'ann'", "digits"),
        ("UPDATE users SET password_hash = 'plain' WHERE name = 'ann'", "argon2id"),
        ("UPDATE users SET password_sv = sv + 1 WHERE name = 'ann'", "its password is of sv"),
        ("UPDATE users SET sv = 1, password_sv = 1 WHERE name = 'ann'", "do not belong together"),
        ("UPDATE users SET sv = 1, password_sv = 1, sv_revision = 0 WHERE name = 'ann'", "never had"),
        ("UPDATE sv_counter SET revision = 1", "never given out"),
        ("DELETE FROM sv_counter", "0 rows"),
        ("UPDATE users SET sv_revision = 1", "more than one user"),
        ("UPDATE refresh_chain SET expires_ms = 1 WHERE ended_ms IS NULL", "outlives"),
        ("UPDATE refresh_token SET exchanged_ms = 1", "none of its tokens is the newest"),
        ("UPDATE refresh_token SET hash = substr(hash, 1, 31)", "not a SHA-256"),
    ],
)
async def test_each_kind_of_damage_is_told(
    open_store: OpenStore, open_accounts: OpenAccounts, damage: str, said: str
) -> None:
    async with open_store(MIGRATIONS) as db, open_accounts.on(db) as accounts:
        await a_life(accounts)
        assert await db.write(run, damage) > 0
        found = await db.read(problems)
        assert any(said in problem for problem in found), found
