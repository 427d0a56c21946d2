"""`holdfast serve`: users come in with an access token as their password; rooms rule over their topics.

A session belongs to a user's id (as text), so that it stays his when he is renamed, and nobody gets it by taking an
old name. Names are never all digits, so that no name is somebody's id.
"""

from __future__ import annotations

from msgspec import Struct

from holdfast.accounts.rules import key_of_existing, name_key
from holdfast.accounts.sessions import Session, Sessions
from holdfast.broker.entry.spaces import UserSpaces
from holdfast.broker.hooks import Access, Challenge, Client, Identity, Login, Refused, Verdict
from holdfast.broker.packets import Reason
from holdfast.errors import HoldfastError, NotLoggedIn, SessionInvalid, TokenExpired
from holdfast.log import get_logger
from holdfast.messenger import TopicRules

METHOD = "JWT"
SYS = "$SYS/"

log = get_logger("broker")


class UserIdentity(Struct, frozen=True, eq=False):
    """A user, as long as the session of his access token lasts."""

    name: str
    session: Session
    is_server: bool = False

    @property
    def user_id(self) -> int:
        return self.session.user_id

    def over(self, now_ms: int) -> Reason | None:
        return None if self.session.why_over(now_ms) is None else Reason.NOT_AUTHORIZED


class AccountHooks:
    """`hooks.Hooks` by our accounts. `ask` before the doors open."""

    def __init__(self, readers: tuple[str, ...]) -> None:
        self._rules: list[TopicRules] = [UserSpaces(readers)]
        self._admins: set[str] = set()
        self.sessions: Sessions

    def ask(self, rules: TopicRules) -> None:
        """One more room with topics. The first that has an answer gives it."""
        self._rules.append(rules)

    # -- who

    async def authenticate(self, login: Login) -> Identity:
        if login.password is None:
            raise Refused(Reason.BAD_USER_NAME_OR_PASSWORD, "log in with an access token as the password")
        return await self._known_by(login, login.password, "an access token as the password")

    async def exchange(
        self, login: Login, method: str, data: bytes | None, step: int, known: Identity | None
    ) -> Identity | Challenge:
        """`JWT`: the token is the authentication data, at once or when it is asked for. Again it must be the same user's."""
        if method != METHOD:
            raise Refused(Reason.BAD_AUTHENTICATION_METHOD, f"the method is {METHOD}")
        if not data:
            if step:
                raise Refused(Reason.NOT_AUTHORIZED, "the authentication data is an access token")
            return Challenge()
        identity = await self._known_by(login, data, "an access token as the authentication data")
        if known is not None and known.name != identity.name:
            raise Refused(Reason.NOT_AUTHORIZED, "this token is another user's")
        return identity

    async def _known_by(self, login: Login, token: bytes, asked: str) -> Identity:
        try:
            session = await self.sessions.verify(token.decode("ascii"))
        except UnicodeDecodeError:
            raise _refusal(login, Reason.BAD_USER_NAME_OR_PASSWORD, f"log in with {asked}") from None
        except (SessionInvalid, TokenExpired) as error:
            raise _refusal(login, Reason.NOT_AUTHORIZED, error.message) from None
        except NotLoggedIn as error:
            raise _refusal(login, Reason.BAD_USER_NAME_OR_PASSWORD, error.message) from None
        except HoldfastError as error:
            raise _refusal(login, Reason.SERVER_UNAVAILABLE, error.message) from None
        if login.username and not _is_called(session, login.username):
            raise _refusal(
                login, Reason.BAD_USER_NAME_OR_PASSWORD, "the user name and the token are not the same user's"
            )
        name = str(session.user_id)
        if session.is_admin:
            self._admins.add(name)
        else:
            self._admins.discard(name)
        return UserIdentity(name, session)

    # -- what

    def authorise(self, client: Client, access: Access, topic: str) -> Verdict:
        if client.is_server:
            return True
        if topic.startswith(SYS):
            return access is not Access.PUBLISH and client.name in self._admins
        try:
            user_id = int(client.name)
        except ValueError:
            return False  # a session from a time when the folder was another kind of broker's
        if access is Access.RECEIVE:
            return self._may_receive(user_id, topic)
        for rules in self._rules:
            ruling = (
                rules.may_publish(user_id, topic)
                if access is Access.PUBLISH
                else rules.may_subscribe(user_id, topic)
            )
            if ruling is not None:
                return ruling
        return False

    def _may_receive(self, user_id: int, topic: str) -> bool:
        for rules in self._rules:
            ruling = rules.may_receive(user_id, topic)
            if ruling is not None:
                return ruling
        return False


def _is_called(session: Session, username: str) -> bool:
    """By his id, or by his name as it is compared everywhere."""
    return username == str(session.user_id) or key_of_existing(username) == name_key(session.name)


def _refusal(login: Login, reason: Reason, text: str) -> Refused:
    log.info("mqtt_login_refused", client_id=login.client_id, address=login.address, why=text)
    return Refused(reason, text)
