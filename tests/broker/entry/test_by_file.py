"""Who comes into `holdfast broker`, by its files."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from holdfast.broker.entry import FileHooks
from holdfast.broker.hooks import Access, Identity, Refused
from holdfast.broker.packets import Reason
from holdfast.broker.passwords import PasswordFile, parse_passwords
from holdfast.clock import ManualClock
from holdfast.errors import CannotStart
from holdfast.settings import Auth, Broker, Settings, Tls
from tests.broker.entry.guests import Guest, login
from tests.conftest import missing


@pytest.fixture
def passwords(tmp_path: Path) -> Path:
    file = tmp_path / "passwords"
    users = PasswordFile().with_user("alice", b"wonderland").with_user("bob", b"builder")
    file.write_text(users.render())
    return file


def hooks_of(broker: Broker, *, tls: Tls | None = None, tries: int = 5) -> FileHooks:
    settings = Settings(broker=broker, tls=tls or Tls(), auth=Auth(login_tries=tries))
    return FileHooks(settings, ManualClock())


async def refused(hooks: FileHooks, *given: str | None, **more: str) -> Reason:
    with pytest.raises(Refused) as error:
        await hooks.authenticate(login(*given, **more))  # type: ignore[arg-type]
    return error.value.reason


# -- who


async def test_a_user_of_the_file_comes_in_with_his_password(passwords: Path) -> None:
    hooks = hooks_of(Broker(password_file=str(passwords)))
    identity = await hooks.authenticate(login("alice", "wonderland"))
    assert (identity.name, identity.is_server, identity.over(0)) == ("alice", False, None)
    assert await refused(hooks, "alice", "builder") is Reason.BAD_USER_NAME_OR_PASSWORD
    assert await refused(hooks, "mallory", "wonderland") is Reason.BAD_USER_NAME_OR_PASSWORD
    assert await refused(hooks, "alice", None) is Reason.BAD_USER_NAME_OR_PASSWORD
    assert await refused(hooks, None, None) is Reason.NOT_AUTHORIZED
    assert await refused(hooks, "", "") is Reason.NOT_AUTHORIZED


@pytest.fixture
def mosquittos(tmp_path: Path) -> Path:
    file = tmp_path / "mosquitto.passwd"
    file.touch(mode=0o600)
    try:
        subprocess.run(
            ["mosquitto_passwd", "-b", file, "alice", "wonderland"], check=True, capture_output=True
        )
    except FileNotFoundError:
        missing("mosquitto_passwd")
    return file


async def test_mosquittos_own_files_are_understood(mosquittos: Path) -> None:
    hooks = hooks_of(Broker(password_file=str(mosquittos)))
    assert (await hooks.authenticate(login("alice", "wonderland"))).name == "alice"
    assert await refused(hooks, "alice", "wonder") is Reason.BAD_USER_NAME_OR_PASSWORD


async def test_anonymous_is_asked_for_and_does_not_open_names_that_have_a_password(passwords: Path) -> None:
    anyone = hooks_of(Broker(anonymous=True))
    assert (await anyone.authenticate(login())).name == ""
    assert (await anyone.authenticate(login("alice", "whatever"))).name == "alice"
    both = hooks_of(Broker(anonymous=True, password_file=str(passwords)))
    assert (await both.authenticate(login())).name == ""
    assert await refused(both, "alice", "whatever") is Reason.BAD_USER_NAME_OR_PASSWORD
    assert await refused(both, "mallory", "whatever") is Reason.BAD_USER_NAME_OR_PASSWORD


async def test_a_certificates_name_counts_and_not_what_connect_says(passwords: Path) -> None:
    hooks = hooks_of(Broker(password_file=str(passwords)), tls=Tls(cn_as_username=True))
    identity = await hooks.authenticate(login("bob", "nonsense", certificate_name="sensor-7"))
    assert identity.name == "sensor-7"
    assert (await hooks.authenticate(login("bob", "builder"))).name == "bob"
    without = hooks_of(Broker(password_file=str(passwords)))
    assert (
        await refused(without, "bob", "nonsense", certificate_name="bob") is Reason.BAD_USER_NAME_OR_PASSWORD
    )
    only = hooks_of(Broker(), tls=Tls(cn_as_username=True))
    assert await refused(only, "bob", "builder") is Reason.NOT_AUTHORIZED


async def test_there_is_no_other_method(passwords: Path) -> None:
    hooks = hooks_of(Broker(anonymous=True))
    with pytest.raises(Refused) as error:
        await hooks.exchange(login(), "JWT", b"x", 0, None)
    assert error.value.reason is Reason.BAD_AUTHENTICATION_METHOD


# -- guessing


async def test_guessing_is_slowed_down_and_the_right_password_too_for_a_moment(passwords: Path) -> None:
    hooks = hooks_of(Broker(password_file=str(passwords)), tries=3)
    for _ in range(3):
        assert await refused(hooks, "alice", "guess") is Reason.BAD_USER_NAME_OR_PASSWORD
    assert await refused(hooks, "alice", "guess") is Reason.CONNECTION_RATE_EXCEEDED
    assert await refused(hooks, "alice", "wonderland") is Reason.CONNECTION_RATE_EXCEEDED
    assert (await hooks.authenticate(login("bob", "builder"))).name == "bob"
    elsewhere = await hooks.authenticate(login("alice", "wonderland", address="198.51.100.7"))
    assert elsewhere.name == "alice"


async def test_a_hundred_guesses_at_once_are_not_a_hundred_guesses(passwords: Path) -> None:
    hooks = hooks_of(Broker(password_file=str(passwords)), tries=3)
    answers = await asyncio.gather(
        *(hooks.authenticate(login("alice", f"guess {number}")) for number in range(100)),
        return_exceptions=True,
    )
    reasons = [answer.reason for answer in answers if isinstance(answer, Refused)]
    assert len(reasons) == 100
    assert reasons.count(Reason.BAD_USER_NAME_OR_PASSWORD) <= 3 + 2, "those under way when it was enough"


async def test_devices_that_all_come_back_at_once_are_no_attack(passwords: Path) -> None:
    hooks = hooks_of(Broker(password_file=str(passwords)), tries=3)
    started = time.monotonic()
    many: list[Identity] = await asyncio.gather(
        *(hooks.authenticate(login("alice", "wonderland", client_id=str(n))) for n in range(500))
    )
    assert {identity.name for identity in many} == {"alice"}
    assert time.monotonic() - started < 5, "one password is hashed once"


def changes(file: Path, name: str, password: bytes) -> None:
    file.write_text(parse_passwords(file.read_text()).with_user(name, password).render())


async def test_a_password_that_was_changed_is_not_remembered(passwords: Path) -> None:
    hooks = hooks_of(Broker(password_file=str(passwords)))
    await hooks.authenticate(login("alice", "wonderland"))
    changes(passwords, "alice", b"looking glass")
    hooks.read_again()
    assert await refused(hooks, "alice", "wonderland") is Reason.BAD_USER_NAME_OR_PASSWORD
    assert (await hooks.authenticate(login("alice", "looking glass"))).name == "alice"


async def test_an_unknown_name_takes_as_long_as_a_wrong_password_whatever_the_files_form(
    tmp_path: Path,
) -> None:
    """Mosquitto's hashes are quicker than ours by far: an unknown name must not cost ours there."""
    file = tmp_path / "passwords"
    salted = "$6$" + "c2FsdHNhbHQ=" + "$" + "A" * 86 + "=="
    file.write_text("".join(f"user{number}:{salted}\n" for number in range(10)))
    hooks = hooks_of(Broker(password_file=str(file)), tries=1_000)

    async def takes(name: str) -> float:
        best = 1.0
        for _ in range(20):
            started = time.perf_counter()
            await refused(hooks, name, "guess")
            best = min(best, time.perf_counter() - started)
        return best

    assert await takes("nobody") < 10 * await takes("user1")


# -- what

RULES = """
topic read public/#
user alice
topic readwrite home/#
topic deny home/safe
pattern write up/%u/%c
"""


def test_the_acl_file_rules(tmp_path: Path) -> None:
    file = tmp_path / "acl"
    file.write_text(RULES)
    hooks = hooks_of(Broker(anonymous=True, acl_file=str(file)))
    alice, nobody = Guest("alice", "phone"), Guest("", "x")
    for _ in range(2):  # asked and remembered
        assert hooks.authorise(alice, Access.PUBLISH, "home/lamp") is True
        assert hooks.authorise(alice, Access.PUBLISH, "home/safe") is False
        assert hooks.authorise(alice, Access.PUBLISH, "up/alice/phone") is True
        assert hooks.authorise(alice, Access.RECEIVE, "up/alice/phone") is False
        assert hooks.authorise(Guest("alice", "tablet"), Access.PUBLISH, "up/alice/phone") is False
        assert hooks.authorise(alice, Access.SUBSCRIBE, "home/#") is True
        assert hooks.authorise(alice, Access.SUBSCRIBE, "public/#") is False
        assert hooks.authorise(nobody, Access.SUBSCRIBE, "public/#") is True
        assert hooks.authorise(nobody, Access.RECEIVE, "home/lamp") is False
        assert hooks.authorise(Guest("", is_server=True), Access.PUBLISH, "home/safe") is True
    file.write_text("user alice\ntopic read home/#\n")
    hooks.read_again()
    assert hooks.authorise(alice, Access.PUBLISH, "home/lamp") is False


def test_without_an_acl_file_everything_is_allowed() -> None:
    hooks = hooks_of(Broker(anonymous=True))
    assert all(hooks.authorise(Guest(), access, "any/thing") is True for access in Access)


def test_what_is_remembered_of_rulings_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.broker.entry.by_file.MOST_RULINGS", 100)
    file = tmp_path / "acl"
    file.write_text(RULES)
    hooks = hooks_of(Broker(anonymous=True, acl_file=str(file)))
    for number in range(1_000):
        assert hooks.authorise(Guest(), Access.RECEIVE, f"public/{number}") is True
        assert len(hooks._rulings) <= 100


# -- what an operator may get wrong


@pytest.mark.parametrize(
    ("broker", "text", "says"),
    [
        ({}, "", "nobody could log in"),
        ({"password_file": "/nonexistent"}, "", "broker.password_file: cannot read /nonexistent"),
        ({"password_file": "HERE"}, "alice:plain\n", "line 1"),
        ({"password_file": "HERE"}, "alice\n", "line 1"),
        ({"anonymous": True, "acl_file": "HERE"}, "topic read a\nuser\n", "line 2"),
        ({"anonymous": True, "acl_file": "HERE"}, "topic read a/#/b\n", "line 1"),
        ({"anonymous": True, "acl_file": "/nonexistent"}, "", "broker.acl_file: cannot read"),
    ],
)
def test_each_mistake_in_a_file_is_one_sentence(
    tmp_path: Path, broker: dict[str, object], text: str, says: str
) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    given = {name: str(file) if value == "HERE" else value for name, value in broker.items()}
    with pytest.raises(CannotStart, match=says) as refused:
        hooks_of(msgspec.convert(given, Broker))
    assert "\n" not in str(refused.value)
    assert "plain" not in str(refused.value)
