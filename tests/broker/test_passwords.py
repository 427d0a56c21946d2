"""The password file: our hashes and Mosquitto's, and the real mosquitto_passwd as witness."""

import shutil
import subprocess
from pathlib import Path

import argon2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.broker.passwords import (
    PasswordFile,
    PasswordFileError,
    hash_password,
    parse_passwords,
    verify_password,
)
from tests.conftest import missing

SHA512 = (
    "$6$VVxj4HwMtHnLJxpn"
    "$33cXJvROYqCJg0J+ZNYV1B+vD1FTk3stZhwI7tbFkVN3pC7Zb8it2jdmtHyJ06ZQ5aH9hERS9asnTSMcLJxMBQ=="
)
PBKDF2 = (
    "$7$101$8X/oLb4qrD9Tx1Xd"
    "$BbkXYltFo6vH79guKlD8a3Da/ubc506YxZZgGPPVVuF40rnIjfe6YZaCgClgVV6CZkG9UqAiljFavzSR+wcoYA=="
)
CHEAP = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.mark.parametrize(("known", "password"), [(SHA512, b"hunter2"), (PBKDF2, b"secret")])
def test_hashes_of_mosquitto_are_verified(known: str, password: bytes) -> None:
    assert verify_password(known, password)
    assert not verify_password(known, password + b" ")
    assert not verify_password(known, b"")


def test_argon2id_with_the_long_salt_of_mosquitto_2_1_is_verified() -> None:
    known = CHEAP.hash("pässword", salt=bytes(64))
    assert verify_password(known, "pässword".encode())
    assert not verify_password(known, b"password")


@pytest.fixture
def tool() -> str:
    found = shutil.which("mosquitto_passwd")
    if found is None:
        missing("Mosquitto")
    assert found is not None
    return found


@pytest.mark.parametrize("algorithm", ["sha512", "sha512-pbkdf2"])
@pytest.mark.parametrize("password", ["secret", "with spaces: and $", "日本"])
def test_a_file_written_by_mosquitto_passwd_is_read(
    tmp_path: Path, tool: str, algorithm: str, password: str
) -> None:
    path = tmp_path / "passwords"
    subprocess.run([tool, "-H", algorithm, "-c", "-b", str(path), "ann", password], check=True)
    subprocess.run([tool, "-H", algorithm, "-b", str(path), "bob", "other"], check=True)
    users = parse_passwords(path.read_text())
    assert users.verify("ann", password.encode())
    assert not users.verify("bob", password.encode())
    assert users.verify("bob", b"other")


def test_mosquitto_passwd_can_edit_a_file_that_we_wrote(tmp_path: Path, tool: str) -> None:
    path = tmp_path / "passwords"
    path.write_text(PasswordFile({"ann": SHA512, "bob": PBKDF2}).render())
    subprocess.run([tool, "-D", str(path), "bob"], check=True)
    assert parse_passwords(path.read_text()).hashes == {"ann": SHA512}


def test_a_new_user_is_hashed_with_argon2id_and_can_log_in() -> None:
    users = PasswordFile({"ann": SHA512}).with_user("bob", b"\xff\x00")
    assert users.hashes["bob"].startswith("$argon2id$")
    assert users.verify("bob", b"\xff\x00")
    assert not users.verify("bob", b"\xff")
    assert users.without_user("bob") == PasswordFile({"ann": SHA512})


def test_a_new_password_replaces_the_old_one() -> None:
    users = PasswordFile({"ann": SHA512}).with_user("ann", b"new")
    assert users.verify("ann", b"new")
    assert not users.verify("ann", b"hunter2")


def test_two_hashes_of_one_password_differ() -> None:
    assert hash_password(b"x") != hash_password(b"x")


def test_an_unknown_user_is_refused_after_as_much_work_as_a_known_one(monkeypatch) -> None:
    from holdfast.broker import passwords

    worked: list[str] = []
    monkeypatch.setattr(passwords, "verify_password", lambda known, _: worked.append(known) or False)
    assert not PasswordFile({}).verify("nobody", b"x")
    assert worked[0].startswith("$argon2id$")


def test_comments_and_blank_lines_are_skipped() -> None:
    assert parse_passwords(f"# users\n\n  ann:{SHA512}  \n").hashes == {"ann": SHA512}


@pytest.mark.parametrize(
    "line",
    [
        "ann",
        f":{SHA512}",
        "ann:secret",
        "ann:",
        "ann:$6$only",
        "ann:$6$$",
        "ann:$6$!!!!$AAAA",
        "ann:$7$0$AAAA$AAAA",
        "ann:$7$-1$AAAA$AAAA",
        "ann:$7$99999999999$AAAA$AAAA",
        "ann:$5$AAAA$AAAA",
        "ann:$argon2id$nonsense",
        "ann:$argon2id$é",
        SHA512[:-4] + "AA==",
        f"ann:{SHA512}\nann:{SHA512}",
    ],
)
def test_a_line_that_cannot_be_read_is_named_without_its_secret(line: str) -> None:
    with pytest.raises(PasswordFileError) as refusal:
        parse_passwords("# one\n" + line)
    assert str(refusal.value).startswith(("line 2:", "line 3:"))
    assert "secret" not in str(refusal.value)
    assert "$" not in str(refusal.value)


@pytest.mark.parametrize("name", ["", "a:b", "#a", " a", "a\n"])
def test_a_name_that_the_file_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="user name"):
        PasswordFile({}).with_user(name, b"x")


@given(st.text(max_size=80))
def test_no_hash_makes_the_check_fail_otherwise_than_by_saying_no(known: str) -> None:
    assert not verify_password(known, b"x")
    assert not verify_password("$7$" + known, b"x")
    assert not verify_password("$argon2id$" + known, b"x")
