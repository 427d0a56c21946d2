"""`holdfast broker`: users of a password file, rules of an ACL file, certificates, or anonymous when asked for.

| CONNECT has | comes in as |
|---|---|
| a verified certificate, with `tls.cn_as_username` | its common name, whatever else CONNECT says |
| a user name, and there is a password file | that user, if the password is right |
| a user name, no password file, `broker.anonymous` | that name, unproved |
| no user name, `broker.anonymous` | nobody: the name is empty |
| anything else | refused |

A wrong password and an unknown user take alike long and count alike (`accounts.throttle`).
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from holdfast.accounts.throttle import Throttle
from holdfast.broker import acl
from holdfast.broker.acl import Acl, AclFileError, parse_acl
from holdfast.broker.hooks import Access, Challenge, Client, Identity, Login, Refused, Verdict
from holdfast.broker.packets import Reason
from holdfast.broker.passwords import PasswordFile, PasswordFileError, parse_passwords
from holdfast.clock import Clock
from holdfast.errors import CannotStart, TooManyLogins
from holdfast.log import get_logger
from holdfast.settings import Settings

HASHES_AT_ONCE = 2
MOST_WAITING = 1_000
MOST_REMEMBERED = 10_000
MOST_RULINGS = 50_000

log = get_logger("broker")


class NamedIdentity(Struct, frozen=True):
    """Somebody with a name from a file or a certificate; good as long as the connection."""

    name: str
    is_server: bool = False

    def over(self, _now_ms: int) -> Reason | None:
        return None


class Files(Struct, frozen=True):
    """What the operator wrote."""

    passwords: PasswordFile | None
    acl: Acl | None


def read_files(settings: Settings) -> Files:
    """The two files, or `CannotStart` with the file and the line."""
    broker = settings.broker
    passwords = rules = None
    if broker.password_file:
        try:
            passwords = parse_passwords(_text("broker.password_file", broker.password_file))
        except PasswordFileError as error:
            raise CannotStart(f"broker.password_file: {broker.password_file}: {error}") from None
    if broker.acl_file:
        try:
            rules = parse_acl(_text("broker.acl_file", broker.acl_file))
        except AclFileError as error:
            raise CannotStart(f"broker.acl_file: {broker.acl_file}: {error}") from None
    return Files(passwords, rules)


def _text(setting: str, file: str) -> str:
    try:
        return Path(file).read_text("utf-8")
    except OSError as error:
        raise CannotStart(f"{setting}: cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CannotStart(f"{setting}: {file} is not UTF-8 text") from None


class FileHooks:
    """`hooks.Hooks` by files. `read_again` takes what the operator changed; who is inside stays inside."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._anonymous = settings.broker.anonymous
        self._by_certificate = settings.tls.cn_as_username
        self._throttle = Throttle(clock, settings.auth.login_tries)
        self._threads = ThreadPoolExecutor(HASHES_AT_ONCE, thread_name_prefix="holdfast-mqtt-hash")
        self._turns = asyncio.Semaphore(HASHES_AT_ONCE)
        self._waiting = 0
        self._secret = secrets.token_bytes(32)
        self._remembered: dict[str, tuple[str, bytes]] = {}
        self._rulings: dict[tuple[str, str, Access, str], bool] = {}
        self.read_again()
        if not (self._anonymous or self._files.passwords or self._by_certificate):
            raise CannotStart(
                "nobody could log in: give --password-file FILE (or --tls-cn-as-username), or --anonymous to let"
                " anyone in"
            )

    def read_again(self) -> None:
        self._files = read_files(self._settings)
        self._rulings.clear()

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    # -- who

    async def authenticate(self, login: Login) -> Identity:
        if self._by_certificate and login.certificate_name is not None:
            return NamedIdentity(login.certificate_name)
        if not login.username:
            if self._anonymous:
                return NamedIdentity("")
            raise _refusal(login, Reason.NOT_AUTHORIZED, "log in with a user name and a password")
        if self._files.passwords is None:
            if self._anonymous:
                return NamedIdentity(login.username)
            raise _refusal(login, Reason.NOT_AUTHORIZED, "log in with a certificate")
        if not await self._is_right(self._files.passwords, login, login.username, login.password or b""):
            raise _refusal(login, Reason.BAD_USER_NAME_OR_PASSWORD, "the user name or the password is wrong")
        return NamedIdentity(login.username)

    async def exchange(
        self, _login: Login, _method: str, _data: bytes | None, _step: int, _known: Identity | None
    ) -> Identity | Challenge:
        raise Refused(Reason.BAD_AUTHENTICATION_METHOD, "log in with a user name and a password")

    async def _is_right(self, passwords: PasswordFile, login: Login, name: str, password: bytes) -> bool:
        """A password found right a while ago is known again at once: after a restart of the network everybody
        comes at the same time, and a slow hash for each would keep them waiting."""
        mark = hmac.digest(self._secret, password, "sha256")
        if self._remembers(passwords, name, mark):
            return True
        if self._waiting >= MOST_WAITING:
            raise _refusal(login, Reason.SERVER_BUSY, "too many logins at the moment; try again")
        self._waiting += 1
        try:
            async with self._turns:  # tries count from here on: many devices that come at once are no attack
                if self._remembers(passwords, name, mark):
                    return True
                attempt = self._throttle.begin(name, login.address)
                if not await self._verify(passwords, name, password):
                    return False
                attempt.succeeded()
        except TooManyLogins as error:
            raise _refusal(login, Reason.CONNECTION_RATE_EXCEEDED, error.message) from None
        finally:
            self._waiting -= 1
        self._remember(name, passwords.hashes[name], mark)
        return True

    async def _verify(self, passwords: PasswordFile, name: str, password: bytes) -> bool:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, passwords.verify, name, password)

    def _remembers(self, passwords: PasswordFile, name: str, mark: bytes) -> bool:
        kept, known = self._remembered.get(name, ("", b""))
        return bool(kept) and passwords.hashes.get(name) == kept and hmac.compare_digest(mark, known)

    def _remember(self, name: str, kept: str, mark: bytes) -> None:
        self._remembered.pop(name, None)
        self._remembered[name] = (kept, mark)
        if len(self._remembered) > MOST_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]

    # -- what

    def authorise(self, client: Client, access: Access, topic: str) -> Verdict:
        if self._files.acl is None or client.is_server:
            return True
        key = (client.client_id, client.name, access, topic)
        known = self._rulings.get(key)
        if known is None:
            if len(self._rulings) >= MOST_RULINGS:
                self._rulings.clear()
            known = self._rulings[key] = self._rule(self._files.acl, client, access, topic)
        return known

    def _rule(self, rules: Acl, client: Client, access: Access, topic: str) -> bool:
        who = acl.Client(client.client_id, client.name or None)
        if access is Access.PUBLISH:
            return rules.may_publish(who, topic)
        if access is Access.SUBSCRIBE:
            return rules.may_subscribe(who, topic)
        return rules.may_receive(who, topic)


def _refusal(login: Login, reason: Reason, text: str) -> Refused:
    log.info("mqtt_login_refused", client_id=login.client_id, address=login.address, why=text)
    return Refused(reason, text)
