"""CONNECT, step by step (3.1.4): who may come in, and with which session.

    the version → the client id → what it asks for → who it is → its will → the session that is there → ours now
    → on disk → CONNACK → what waits

Steps up to "its will" may take their time and change nothing; from there to "ours now" nothing is awaited, so that two
connections with one client id meet in a definite order. `Refused` at any step is answered in CONNACK.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.broker.hooks import Access, Challenge, Identity, Login, Refused
from holdfast.broker.packets import (
    V5,
    Auth,
    Connack,
    Connect,
    ProtocolError,
    Reason,
    encode,
    encode_within,
    payload_fits_its_format,
)
from holdfast.broker.packets.reason import FAILURE
from holdfast.broker.peer import Peer, Stage
from holdfast.broker.session import Outgoing
from holdfast.broker.session.session import Session
from holdfast.broker.topics import count_levels
from holdfast.broker.wills import Testator
from holdfast.errors import HoldfastError
from holdfast.log import get_logger

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker

NEVER: Final = 0xFFFF_FFFF
"""A session expiry interval that means: it does not end (3.1.2.11.2)."""

log = get_logger("broker")


class Left(Exception):
    """The client went away while it was let in."""


class Admitted(msgspec.Struct, frozen=True):
    """`is_on_disk_first`: what CONNACK says has to be there after a crash: a session, a will, or that an old session is
    gone."""

    session: Session
    assigned: str | None
    """The client id that was made up."""
    resumed: bool
    is_on_disk_first: bool


class Admission:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: set[asyncio.Task[None]] = set()

    def connect(self, peer: Peer, connect: Connect) -> None:
        peer.stage = Stage.ADMITTING
        peer.connect = connect
        if connect.authentication_method is None:
            peer.think()  # what it sends before its CONNACK waits
        self._spawn(self._admit(peer, connect))

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _admit(self, peer: Peer, connect: Connect) -> None:
        try:
            admitted = await self._session_for(peer, connect)
            if admitted.is_on_disk_first and not await self._is_on_disk(admitted):
                raise Refused(Reason.SERVER_UNAVAILABLE)
            if admitted.session.connection is not peer:
                return  # taken over, kicked or gone in between
            self._open(peer, admitted.session, admitted.assigned, resumed=admitted.resumed)
        except Refused as refused:
            peer.refuse(refused.reason, refused.text)
        except ProtocolError as error:
            peer.refuse(error.reason, error.message)
        except (Left, asyncio.CancelledError):
            peer.transport.abort()
        except HoldfastError as error:
            log.warning("client_not_admitted", error=error.reason)
            peer.refuse(Reason.SERVER_UNAVAILABLE)
        except Exception:
            log.exception("client_not_admitted")
            peer.refuse(Reason.UNSPECIFIED)

    async def _is_on_disk(self, admitted: Admitted) -> bool:
        """The queue of a session that goes on is read back: whatever happened to it has to be in the store."""
        journal = self._broker.journal
        return await (journal.written() if admitted.resumed else journal.settled())

    async def _session_for(self, peer: Peer, connect: Connect) -> Admitted:
        self._speaks(connect)
        if peer.refusal is not None:
            raise Refused(peer.refusal)
        client_id, assigned = self._name(connect)
        self._fits(connect)
        identity = await self._identify(peer, connect, client_id)
        await self._may_leave_will(identity, client_id, connect)
        if peer.is_closed:
            raise Left
        # from here on nothing is awaited
        if self._broker.is_closing:
            raise Refused(Reason.SERVER_UNAVAILABLE)
        before = found = self._broker.sessions_by_id.get(client_id)
        if found is not None:
            found = self._take_over(found, identity, connect)
        session = found if found is not None else self._begin(client_id, identity, connect)
        self._belongs(peer, session, identity, connect)
        if found is not None:
            await self._broker.subscribing.recheck(session)
        discards = before is not None and before.persistent and found is None
        return Admitted(
            session,
            assigned,
            resumed=found is not None,
            is_on_disk_first=session.persistent or connect.will is not None or discards,
        )

    # -- may it?

    def _speaks(self, connect: Connect) -> None:
        if str(connect.version) not in self._broker.settings.versions:
            raise Refused(Reason.UNSUPPORTED_PROTOCOL_VERSION)

    def _name(self, connect: Connect) -> tuple[str, str | None]:
        """The client id; made up when it is empty, as far as version and settings allow [MQTT-3.1.3-6]."""
        if connect.client_id:
            return connect.client_id, None
        if not self._broker.settings.empty_client_id or (connect.version != V5 and not connect.clean_start):
            raise Refused(Reason.CLIENT_ID_NOT_VALID)
        made = "auto-" + secrets.token_hex(12)
        return made, made

    def _fits(self, connect: Connect) -> None:
        settings = self._broker.settings
        will = connect.will
        if will is None:
            return
        if will.qos > settings.max_qos:
            raise Refused(Reason.QOS_NOT_SUPPORTED)
        if will.retain and not settings.retain:
            raise Refused(Reason.RETAIN_NOT_SUPPORTED)
        if not payload_fits_its_format(will.payload, will.properties):
            raise Refused(Reason.PAYLOAD_FORMAT_INVALID)
        if settings.max_payload and len(will.payload) > settings.max_payload:
            raise Refused(Reason.PACKET_TOO_LARGE)
        if will.topic.startswith("$SYS/") or count_levels(will.topic) > settings.max_levels:
            raise Refused(Reason.TOPIC_NAME_INVALID)

    async def _identify(self, peer: Peer, connect: Connect, client_id: str) -> Identity:
        login = self.login(peer, connect, client_id)
        if connect.authentication_method is None:
            return await self._broker.hooks.authenticate(login)
        return await self._exchange(
            peer, login, connect.authentication_method, connect.authentication_data, None
        )

    def login(self, peer: Peer, connect: Connect, client_id: str) -> Login:
        return Login(
            client_id=client_id,
            username=connect.username,
            password=connect.password,
            version=connect.version,
            address=peer.transport.address,
            certificate_name=peer.transport.certificate_name,
        )

    async def _exchange(
        self, peer: Peer, login: Login, method: str, data: bytes | None, known: Identity | None
    ) -> Identity:
        """Enhanced authentication (4.12): AUTH to and fro until the hook knows who it is."""
        step = 0
        while True:
            found = await self._broker.hooks.exchange(login, method, data, step, known)
            if peer.is_closed:
                raise Left
            if not isinstance(found, Challenge):
                return found
            answer: asyncio.Future[Auth] = asyncio.get_running_loop().create_future()
            peer.answer = answer
            peer.send(
                encode(
                    Auth(
                        reason=Reason.CONTINUE_AUTHENTICATION,
                        authentication_method=method,
                        authentication_data=found.data,
                    ),
                    V5,
                )
            )
            try:
                said = await answer
            finally:
                peer.answer = None
            data = said.authentication_data
            step += 1

    async def _may_leave_will(self, identity: Identity, client_id: str, connect: Connect) -> None:
        if connect.will is None:
            return
        testator = Testator(client_id, identity.name, identity.is_server)
        verdict = self._broker.ask(testator, Access.PUBLISH, connect.will.topic)
        if not (verdict if isinstance(verdict, bool) else await verdict):
            raise Refused(Reason.NOT_AUTHORIZED, "the will's topic is not yours to publish")

    # -- its session

    def _take_over(self, found: Session, identity: Identity, connect: Connect) -> Session | None:
        """The session that is there, if it lasts; None when a new one is to be made in its place."""
        broker = self._broker
        expires_ms = found.expires_ms()
        if expires_ms is not None and expires_ms <= broker.clock.now_ms():
            broker.departures.expire(found)
            return None
        if found.name != identity.name:
            raise Refused(Reason.CLIENT_ID_NOT_VALID, "this client id belongs to somebody else")
        if found.connection is not None:
            broker.departures.taken_over(found.connection)
        if connect.clean_start:
            broker.departures.end(found)
        return None if found.ended else found

    def _begin(self, client_id: str, identity: Identity, connect: Connect) -> Session:
        broker = self._broker
        expiry = self.expiry_of(connect.version, connect.clean_start, connect.session_expiry)
        persistent = expiry != 0
        session = Session(
            session_id=broker.next_session_number() if persistent else 0,
            client_id=client_id,
            name=identity.name,
            is_server=identity.is_server,
            version=connect.version,
            expiry=expiry,
            persistent=persistent,
            created_ms=broker.clock.now_ms(),
            outgoing=Outgoing(persistent=persistent),
        )
        broker.keep_session(session)
        return session

    def expiry_of(self, version: int, clean_start: bool, asked: int) -> int | None:
        """Seconds that the session outlives its connection; None for ever."""
        settings = self._broker.settings
        if version != V5:
            return 0 if clean_start else (settings.session_expiry or None)
        most = settings.max_session_expiry
        if asked == NEVER:
            return most or None
        return min(asked, most) if most else asked

    def _belongs(self, peer: Peer, session: Session, identity: Identity, connect: Connect) -> None:
        """From now on the session is this connection's; its messages wait until CONNACK."""
        broker = self._broker
        peer.session = session
        peer.identity = identity
        session.connection = peer
        session.version = connect.version
        session.is_server = identity.is_server
        session.expiry = self.expiry_of(connect.version, connect.clean_start, connect.session_expiry)
        session.disconnected_ms = None
        session.since_ms = broker.clock.now_ms()
        session.outgoing.limit = min(connect.receive_maximum, broker.settings.max_inflight)
        broker.wills.set(session, connect.will)
        if session.persistent:
            broker.journal.changed(session)

    # -- in

    def _open(self, peer: Peer, session: Session, assigned: str | None, *, resumed: bool) -> None:
        broker, connect = self._broker, peer.connect
        assert connect is not None
        settings = broker.settings
        peer.stage = Stage.OPEN
        keep_alive = connect.keep_alive
        if settings.server_keep_alive and connect.version == V5:
            keep_alive = settings.server_keep_alive
        peer.keep_alive = keep_alive * 1.5
        peer.most_aliases = min(connect.topic_alias_maximum, settings.topic_alias_max)
        peer.is_plain = not peer.most_aliases and connect.maximum_packet_size is None
        peer.meter = broker.limits.meter()
        connack = self._connack(connect, session, assigned, resumed=resumed)
        answer = encode_within(connack, connect.version, connect.maximum_packet_size)
        if answer is None:  # [MQTT-3.1.2-24] leaves no way to say anything to this client
            peer.disconnect(Reason.PACKET_TOO_LARGE)
            return
        peer.send(answer)
        broker.counters.connections += 1
        log.info(
            "client_connected",
            client=session.client_id,
            user=session.name,
            address=peer.transport.address,
            version=connect.version,
            resumed=resumed,
        )
        session.peer = peer
        broker.turns.pump_later(session)
        peer.go_on()

    def _connack(self, connect: Connect, session: Session, assigned: str | None, *, resumed: bool) -> Connack:
        settings = self._broker.settings
        granted = NEVER if session.expiry is None else session.expiry
        asks_for_information = connect.request_response_information
        return Connack(
            session_present=resumed,
            session_expiry=granted if granted != connect.session_expiry else None,
            receive_maximum=settings.receive_maximum,
            maximum_qos=settings.max_qos,
            retain_available=settings.retain,
            maximum_packet_size=settings.max_packet_size,
            assigned_client_id=assigned,
            topic_alias_maximum=settings.topic_alias_max,
            server_keep_alive=settings.server_keep_alive or None,
            response_information=f"response/{session.client_id}" if asks_for_information else None,
            authentication_method=connect.authentication_method,
        )

    # -- again

    def reauthenticate(self, peer: Peer, auth: Auth) -> None:
        """AUTH of an open connection (4.12.1); everything else goes on meanwhile."""
        connect = peer.connect
        if connect is None or connect.authentication_method is None:
            peer.disconnect(
                Reason.PROTOCOL_ERROR, "this connection was not made with enhanced authentication"
            )
        elif auth.authentication_method != connect.authentication_method:
            peer.disconnect(Reason.PROTOCOL_ERROR, "the authentication method may not change")
        elif auth.reason == Reason.CONTINUE_AUTHENTICATION:
            self.answered(peer, auth)
        elif peer.answer is not None or peer.is_reauthenticating:
            peer.disconnect(Reason.PROTOCOL_ERROR, "a re-authentication is under way")
        else:
            peer.is_reauthenticating = True
            self._spawn(self._reauthenticate(peer, connect, auth))

    def answered(self, peer: Peer, auth: Auth) -> None:
        """AUTH within an exchange: the next step, by the method that the exchange began with [MQTT-4.12.0-5]."""
        connect = peer.connect
        if auth.reason != Reason.CONTINUE_AUTHENTICATION or peer.answer is None or peer.answer.done():
            raise ProtocolError(Reason.PROTOCOL_ERROR, "MQTT-4.12.0-3", "nobody asked for this AUTH")
        if connect is None or auth.authentication_method != connect.authentication_method:
            raise ProtocolError(
                Reason.PROTOCOL_ERROR, "MQTT-4.12.0-5", "the authentication method may not change"
            )
        peer.answer.set_result(auth)

    async def _reauthenticate(self, peer: Peer, connect: Connect, auth: Auth) -> None:
        session, method = peer.session, auth.authentication_method
        assert session is not None
        assert method is not None
        try:
            login = self.login(peer, connect, session.client_id)
            identity = await self._exchange(peer, login, method, auth.authentication_data, peer.identity)
            if identity.name != session.name:
                raise Refused(Reason.NOT_AUTHORIZED, "a connection cannot change its user")
        except Refused as refused:
            known = refused.reason if refused.reason >= FAILURE else Reason.NOT_AUTHORIZED
            peer.disconnect(known, refused.text)
        except (Left, asyncio.CancelledError):
            return
        except Exception:
            log.exception("client_not_reauthenticated", client=session.client_id)
            peer.disconnect(Reason.UNSPECIFIED)
        else:
            peer.identity = identity
            session.is_server = identity.is_server
            peer.send(encode(Auth(reason=Reason.SUCCESS, authentication_method=method), V5))
        finally:
            peer.is_reauthenticating = False
