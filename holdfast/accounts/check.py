"""What `holdfast check` proves of accounts. Each problem is one sentence; none is what a sound store yields."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from holdfast.accounts.rules import name_key, why_not_a_name
from holdfast.ids import MAX_ID
from holdfast.store import Query, Snapshot

PAGE = 1_000
MOST = 100  # problems of one kind; nobody reads more


class _UserRow(Struct, frozen=True):
    id: int
    name: str
    name_key: str
    password_hash: str
    password_sv: int
    sv: int
    sv_revision: int


_USERS = Query(
    _UserRow,
    "SELECT id, name, name_key, password_hash, password_sv, sv, sv_revision FROM users WHERE id > :above"
    " ORDER BY id LIMIT :limit",
)
_COUNTER = Query(int, "SELECT revision FROM sv_counter")
_SHARED_REVISIONS = Query(
    int,
    "SELECT sv_revision FROM users WHERE sv_revision > 0 GROUP BY sv_revision HAVING count(*) > 1 LIMIT :most",
)
_BELOW = Query(int, "SELECT id FROM users WHERE id < 1 LIMIT :most")
_CHAINS_WITHOUT_USER = Query(
    int,
    "SELECT id FROM refresh_chain c WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = c.user_id) LIMIT :most",
)
_CHAINS_FROM_THE_FUTURE = Query(
    int,
    "SELECT c.id FROM refresh_chain c JOIN users u ON u.id = c.user_id WHERE c.sv > u.sv OR c.sv < 1 LIMIT :most",
)
_TOKENS_WITHOUT_CHAIN = Query(
    int,
    "SELECT t.chain_id FROM refresh_token t"
    " WHERE NOT EXISTS (SELECT 1 FROM refresh_chain c WHERE c.id = t.chain_id) LIMIT :most",
)
_TOKENS_OUTLIVING_CHAIN = Query(
    int,
    "SELECT t.chain_id FROM refresh_token t JOIN refresh_chain c ON c.id = t.chain_id"
    " WHERE c.ended_ms IS NULL AND t.expires_ms > c.expires_ms LIMIT :most",
)
_CHAINS_WITHOUT_NEWEST = Query(
    int,
    "SELECT c.id FROM refresh_chain c WHERE c.ended_ms IS NULL AND NOT EXISTS (SELECT 1 FROM refresh_token t"
    " WHERE t.chain_id = c.id AND t.exchanged_ms IS NULL AND t.expires_ms = c.expires_ms)"
    " AND EXISTS (SELECT 1 FROM refresh_token t WHERE t.chain_id = c.id) LIMIT :most",
)
_BAD_HASHES = Query(int, "SELECT chain_id FROM refresh_token WHERE length(hash) <> 32 LIMIT :most")


def verify_accounts(view: Snapshot) -> Iterator[str]:
    """Every problem of users, chains and tokens."""
    counters = view.rows(_COUNTER)
    if len(counters) != 1:
        yield f"sv_counter has {len(counters)} rows, not one"
    last_revision = max(counters, default=0)
    above = 0
    while page := view.rows(_USERS, above=above, limit=PAGE):
        for user in page:
            for problem in _problems_of(user, last_revision):
                yield f"user {user.id}: {problem}"
        above = page[-1].id
    for query, problem in _RULES:
        for number in view.rows(query, most=MOST):
            yield problem.format(number)


def _problems_of(user: _UserRow, last_revision: int) -> Iterator[str]:
    if user.id > MAX_ID:
        yield "its id has more than 63 bits"
    why = why_not_a_name(user.name)
    if why is not None:
        yield f"its name {why}"
    if user.name_key != name_key(user.name):
        yield "it cannot be found by its name"
    if not user.password_hash.startswith("$argon2id$"):
        yield "its password is not an argon2id hash"
    if not 1 <= user.password_sv <= user.sv:
        yield f"its password is of sv {user.password_sv}, itself is at {user.sv}"
    if user.sv_revision > last_revision:
        yield f"its sv_revision {user.sv_revision} was never given out (the last is {last_revision})"
    if user.sv == 1 and user.sv_revision > 0:
        yield f"its sv was raised (revision {user.sv_revision}), and is 1"


_RULES = (
    (_BELOW, "user {}: its id is not positive"),
    (_SHARED_REVISIONS, "sv_revision {} was given to more than one user"),
    (_CHAINS_WITHOUT_USER, "refresh chain {}: its user is missing"),
    (_CHAINS_FROM_THE_FUTURE, "refresh chain {}: its sv is one that its user never had"),
    (_TOKENS_WITHOUT_CHAIN, "a refresh token refers to the chain {}, which is missing"),
    (_TOKENS_OUTLIVING_CHAIN, "a refresh token of the chain {} outlives it"),
    (_CHAINS_WITHOUT_NEWEST, "refresh chain {}: none of its tokens is the newest"),
    (_BAD_HASHES, "a refresh token of the chain {} is not a SHA-256"),
)
