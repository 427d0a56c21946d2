"""Access tokens: what is ours is read, whatever anyone else can make is not."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from holdfast.accounts import keys
from holdfast.accounts.model import Grant
from holdfast.accounts.tokens import LONGEST, AccessTokens, new_refresh_token
from holdfast.clock import ManualClock
from holdfast.errors import CannotStart, InvalidToken, NotLoggedIn, TokenExpired
from tests.accounts.conftest import CHEAP, MIGRATIONS, OpenAccounts, with_settings
from tests.conftest import OpenStore

SECRET = "a secret of the tests, long enough to sign"
ANN = Grant(7, "Zoë", 3)
CLOCK = ManualClock()
NOW = CLOCK.now_ms() // 1000
GOOD: dict[str, object] = {
    "iss": "holdfast", "sub": "Zoë", "uid": "7", "typ": "access", "sv": 3, "jti": "x", "iat": NOW, "exp": NOW + 1800,
}  # fmt: skip


def hs256(secret: str = SECRET, clock: ManualClock = CLOCK) -> AccessTokens:
    return AccessTokens(keys.of_secret(secret), CHEAP, clock)


def signed(claims: object, header: object = None, secret: str = SECRET) -> str:
    """A token that whoever has the secret could make, by hand: a library would refuse some of these."""
    parts = [header if header is not None else {"alg": "HS256", "typ": "JWT"}, claims]
    text = b".".join(base64url(json.dumps(part).encode()) for part in parts)
    return (text + b"." + base64url(hmac.digest(secret.encode(), text, sha256))).decode()


def base64url(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def private_pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_pem(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


OLD_KEY, NEW_KEY = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()


def eddsa(signing: Ed25519PrivateKey, *previous: bytes) -> AccessTokens:
    return AccessTokens(keys.of_pem(private_pem(signing), *previous), CHEAP, CLOCK)


@pytest.mark.parametrize("make", [hs256, lambda: eddsa(NEW_KEY)])
def test_what_was_issued_is_read(make: Callable[[], AccessTokens]) -> None:
    tokens = make()
    token = tokens.issue(ANN)
    claims = tokens.read(token)
    assert (claims.user_id, claims.sub, claims.sv, claims.typ) == (7, "Zoë", 3, "access")
    assert (claims.iss, claims.iat, claims.exp) == ("holdfast", NOW, NOW + 1800)
    assert tokens.issue(ANN) != token
    assert len(token) < 700 < LONGEST


def test_a_token_made_elsewhere_with_the_shared_secret_is_read() -> None:
    assert hs256().read(signed(GOOD)).user_id == 7
    assert hs256().read(signed(GOOD | {"more": [1]}, {"alg": "HS256"})).user_id == 7


@pytest.mark.parametrize(
    "change",
    [
        {"typ": "refresh"}, {"typ": None}, {"iss": "other"}, {"iss": ["holdfast"]}, {"iss": ""},
        {"uid": 7}, {"uid": "-7"}, {"uid": "0"}, {"uid": "07"}, {"uid": "7 "}, {"uid": "7\n"}, {"uid": "٧"},
        {"uid": str(2**63)}, {"uid": "9" * 4000}, {"uid": ""}, {"uid": None}, {"sub": 1},
        {"sv": -1}, {"sv": 0}, {"sv": 2**63}, {"sv": 10**400}, {"sv": "3"}, {"sv": 3.0}, {"sv": True}, {"sv": None},
        {"exp": "never"}, {"exp": None}, {"exp": 2**63}, {"exp": 10**400}, {"exp": 1e300}, {"exp": True},
        {"exp": float(NOW + 1800)}, {"exp": -1}, {"iat": "now"}, {"iat": -1}, {"jti": 5}, {"jti": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_signed_token_with_one_wrong_claim_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidToken):
        hs256().read(signed(GOOD | change))


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_signed_token_without_one_of_its_claims_is_refused(name: str) -> None:
    with pytest.raises(InvalidToken):
        hs256().read(signed({key: value for key, value in GOOD.items() if key != name}))


@pytest.mark.parametrize("claims", [[], "claims", 1, None, [GOOD], {}])
def test_signed_claims_that_are_no_claims_are_refused(claims: object) -> None:
    with pytest.raises(InvalidToken):
        hs256().read(signed(claims))


def test_an_expired_token_says_so_and_one_second_before_it_is_good() -> None:
    clock = ManualClock()
    tokens = hs256(clock=clock)
    token = tokens.issue(ANN)
    clock.advance(1799.999)
    tokens.read(token)
    clock.advance(0.001)
    with pytest.raises(TokenExpired):
        tokens.read(token)


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"}, {"alg": "None", "typ": "JWT"}, {"alg": "HS384"}, {"alg": "HS512"}, {"alg": "EdDSA"},
        {"alg": "RS256"}, {"alg": ""}, {"alg": None}, {"alg": ["HS256"]}, {}, [], "HS256", None, 1,
        {"alg": "HS256", "crit": ["exp"]}, {"alg": "HS256", "b64": False}, {"alg": "HS256", "kid": {"a": 1}},
    ],
    ids=str,
)  # fmt: skip
def test_the_header_cannot_choose_another_algorithm(header: object) -> None:
    body = [base64url(json.dumps(part).encode()) for part in (header, GOOD)]
    unsigned = b".".join(body).decode()
    for token in (f"{unsigned}.", unsigned, signed(GOOD, header if header is not None else "null")):
        with pytest.raises(InvalidToken):
            hs256().read(token)
        with pytest.raises(InvalidToken):
            eddsa(NEW_KEY).read(token)


def test_a_public_key_is_no_hs256_secret() -> None:
    tokens = eddsa(NEW_KEY)
    kid = tokens._keys.signing_id
    public = NEW_KEY.public_key()
    for secret in (
        public_pem(NEW_KEY),
        public.public_bytes(Encoding.Raw, PublicFormat.Raw),
        base64url(public.public_bytes(Encoding.Raw, PublicFormat.Raw)),
    ):
        for header in ({"alg": "HS256", "kid": kid}, {"alg": "EdDSA", "kid": kid}):
            text = b".".join(base64url(json.dumps(part).encode()) for part in (header, GOOD))
            token = (text + b"." + base64url(hmac.digest(secret, text, sha256))).decode()
            with pytest.raises(InvalidToken):
                tokens.read(token)


def test_another_secret_and_another_key_open_nothing() -> None:
    with pytest.raises(InvalidToken):
        hs256().read(hs256("another secret that is also long enough").issue(ANN))
    stranger = eddsa(OLD_KEY).issue(ANN)
    with pytest.raises(InvalidToken):
        eddsa(NEW_KEY).read(stranger)
    kid = eddsa(NEW_KEY)._keys.signing_id
    stolen_name = jwt.PyJWS().encode(
        json.dumps(GOOD).encode(), OLD_KEY, algorithm="EdDSA", headers={"kid": kid}
    )
    with pytest.raises(InvalidToken):
        eddsa(NEW_KEY).read(stolen_name)
    with pytest.raises(InvalidToken):
        eddsa(NEW_KEY).read(hs256().issue(ANN))


@pytest.mark.parametrize("previous", [private_pem(OLD_KEY), public_pem(OLD_KEY)])
def test_tokens_of_an_earlier_key_are_good_while_it_is_named(previous: bytes) -> None:
    old = eddsa(OLD_KEY).issue(ANN)
    both = eddsa(NEW_KEY, previous)
    assert both.read(old).user_id == both.read(both.issue(ANN)).user_id == 7
    with pytest.raises(InvalidToken):
        eddsa(OLD_KEY).read(both.issue(ANN))


def test_anyone_can_check_our_tokens_with_the_public_keys() -> None:
    tokens = eddsa(NEW_KEY, public_pem(OLD_KEY))
    shown = [
        json.loads(json.dumps({name: getattr(key, name) for name in key.__struct_fields__}))
        for key in tokens._keys.public()
    ]
    assert len(shown) == 2
    key_set = jwt.PyJWKSet.from_dict({"keys": shown})
    token = tokens.issue(ANN)
    key = key_set[str(jwt.get_unverified_header(token)["kid"])]
    claims = jwt.decode(token, key, algorithms=["EdDSA"], issuer="holdfast", options={"verify_exp": False})
    assert claims["uid"] == "7"
    assert keys.of_secret(SECRET).public() == []


@given(st.one_of(st.text(max_size=200), st.binary(max_size=200).map(lambda raw: base64url(raw).decode())))
def test_garbage_is_refused_quietly(text: str) -> None:
    for tokens in (HS256, EDDSA):
        for token in (text, f"{text}.{text}.{text}", f"{GOOD_HEADER}.{text}.{text}", f"{text}.e30.AAAA"):
            with pytest.raises(NotLoggedIn):
                tokens.read(token)


HS256, EDDSA = hs256(), eddsa(NEW_KEY)
GOOD_HEADER = HS256.issue(ANN).partition(".")[0]


@given(at=st.integers(0, 10_000), to=st.characters(codec="ascii"))
def test_no_change_of_a_character_is_accepted_with_other_claims(at: int, to: str) -> None:
    token = HS256.issue(ANN)
    at %= len(token)
    try:
        claims = HS256.read(token[:at] + to + token[at + 1 :])
    except NotLoggedIn:
        return
    assert claims == HS256.read(
        token
    )  # the same token, or its last bits, which say nothing, spelled differently


@pytest.mark.parametrize("depth", [500, 2_900])
def test_a_header_or_claims_nested_to_the_ceiling_are_refused(depth: int) -> None:
    nest = base64url(b"[" * depth).decode()
    inside = base64url(b'{"alg":"HS256","a":' + b"[" * depth + b"]" * (min(depth, 1_400)) + b"}").decode()
    for token in (f"{nest}.e30.AAAA", f"{inside}.e30.AAAA", f"{GOOD_HEADER}.{nest}.AAAA"):
        with pytest.raises(InvalidToken):
            HS256.read(token)


def test_a_token_of_megabytes_is_not_even_looked_at() -> None:
    with pytest.raises(InvalidToken):
        HS256.read("a" * 10_000_000)


def test_refresh_tokens_hold_32_random_bytes() -> None:
    made = {new_refresh_token() for _ in range(1_000)}
    assert len(made) == 1_000
    assert {len(base64.urlsafe_b64decode(token + "=")) for token in made} == {32}


def test_keys_that_are_none_stop_the_start_with_one_sentence(tmp_path: Path) -> None:
    rsa = generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for pem, previous in (
        (b"nonsense", ()),
        (rsa, ()),
        (private_pem(NEW_KEY), (b"nonsense",)),
        (public_pem(NEW_KEY), ()),
        (private_pem(NEW_KEY), (rsa,)),
    ):
        with pytest.raises(CannotStart, match="_key_file"):
            keys.of_pem(pem, *previous)
    with pytest.raises(CannotStart, match=r"auth\.secret"):
        keys.of_secret("short")


async def test_the_stores_secret_is_made_once_whoever_comes_at_the_same_time(open_store: OpenStore) -> None:
    async with open_store(MIGRATIONS) as db, open_store(MIGRATIONS) as other:
        found = await asyncio.gather(*[keys.load(CHEAP, each) for each in (db, other) * 4])
        assert len({each.signing for each in found}) == 1


async def test_keys_come_from_files_by_setting(open_accounts: OpenAccounts, tmp_path: Path) -> None:
    new, old = tmp_path / "new.pem", tmp_path / "old.pem"
    new.write_bytes(private_pem(NEW_KEY))
    old.write_bytes(public_pem(OLD_KEY))
    settings = with_settings(private_key_file=str(new), previous_key_files=(str(old),))
    async with open_accounts(settings) as accounts:
        assert len(accounts.public_keys()) == 2
        assert accounts.tokens.read(eddsa(OLD_KEY).issue(ANN)).user_id == 7
    async with open_accounts(with_settings(secret=SECRET)) as accounts:
        assert accounts.public_keys() == []
        assert accounts.tokens.read(hs256().issue(ANN)).user_id == 7
    for wrong in (
        with_settings(private_key_file=str(tmp_path / "none.pem")),
        with_settings(previous_key_files=(str(old),)),
    ):
        with pytest.raises(CannotStart):
            async with open_accounts(wrong):
                pass
