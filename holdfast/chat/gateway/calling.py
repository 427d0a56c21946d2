"""CALL_*: signalling between two people. The log of calls decides; frames only say what it has decided.

invite ─► one transaction: both are free, the call rings ─► CALL_INVITE_OK to the caller, CALL_INVITE to the callee
accept, reject, cancel, end, time is up, a side is lost ─► one transaction ─► the frame to the other side
ice ─► to the other side, from memory
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine

import msgspec

from holdfast.chat import call_actions as actions
from holdfast.chat.call_actions import NewCall, Stepped
from holdfast.chat.calls import LIVE, Act, CallState, Why, other
from holdfast.chat.frames import Frame, encode, id_of
from holdfast.chat.gateway.connection import Connection
from holdfast.chat.gateway.online import Online
from holdfast.chat.gateway.relay import Relay
from holdfast.chat.model import Call
from holdfast.chat.reasons import Reason, Refused
from holdfast.clock import Clock
from holdfast.cluster import Cluster
from holdfast.errors import HoldfastError
from holdfast.ids import IdMaker
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings.chat import Chat
from holdfast.store import Database

LONGEST_SDP = 120_000
LONGEST_CANDIDATE = 4_096
LOST_SECONDS = 45.0  # without a connection of one side
LOOK_SECONDS = 10.0
MOST_CALLS = 10_000
DEFAULT_KIND = "audio"
ACTS = frozenset((Act.ACCEPT, Act.REJECT, Act.CANCEL, Act.END))

log = get_logger("chat")


class Calling:
    def __init__(
        self,
        db: Database,
        settings: Chat,
        clock: Clock,
        metrics: Metrics,
        online: Online,
        relay: Relay,
        cluster: Cluster,
        new_id: IdMaker,
    ) -> None:
        self._db = db
        self._settings = settings
        self._clock = clock
        self._online = online
        self._relay = relay
        self._cluster = cluster
        self._new_id = new_id
        self._live: OrderedDict[int, Call] = OrderedDict()
        self._ringing: dict[int, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls = metrics.counter("holdfast_chat_calls", "Calls, by what became of them", "state")

    async def stop(self) -> None:
        for timer in self._ringing.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def signal(self, connection: Connection, frame: Frame) -> None:
        """Raises `Refused`."""
        if frame.sdp is not None and len(frame.sdp) > LONGEST_SDP:
            raise Refused(Reason.BODY_TOO_LONG)
        if frame.ice_candidate is not None and len(frame.ice_candidate) > LONGEST_CANDIDATE:
            raise Refused(Reason.BODY_TOO_LONG)
        if frame.type == "CALL_INVITE":
            await self._invite(connection, frame)
        elif frame.type == "CALL_ICE":
            await self._ice(connection, frame)
        else:
            await self._step(connection, frame, Act(frame.type))

    # -- invite

    async def _invite(self, connection: Connection, frame: Frame) -> None:
        if not frame.to:
            raise Refused(Reason.MISSING_TO)
        callee = id_of(frame.to)
        if callee == connection.user_id:
            raise Refused(Reason.CANNOT_SEND_TO_SELF)
        if callee is None:
            self._refuse(connection, frame, Why.NOT_FOUND)
            return
        new = NewCall(
            self._new_id(), connection.user_id, callee, frame.call_kind or DEFAULT_KIND, self._clock.now_ms()
        )
        reachable = await self._relay.reaches(callee)
        why = await self._db.write(actions.invite, new, reachable=reachable)
        if why is not None:
            self._calls.add(why.value)
            self._refuse(connection, frame, why, 0 if why is Why.NOT_FOUND else new.id)
            return
        call = Call(new.id, new.caller, callee, new.kind, CallState.RINGING, new.made_ms, None, None, None)
        self._keep(call)
        loop = asyncio.get_running_loop()
        self._ringing[call.id] = loop.call_later(self._settings.ring_seconds, self._time_is_up, call.id)
        common = Frame(
            call_id=str(call.id), from_=str(call.caller), to=str(callee), call_kind=call.kind, ts=call.made_ms
        )
        replace = msgspec.structs.replace
        connection.send_critical(
            encode(replace(common, type="CALL_INVITE_OK", client_msg_id=frame.client_msg_id))
        )
        self._relay.tell_user(callee, encode(replace(common, type="CALL_INVITE", sdp=frame.sdp)))

    # -- on the way

    async def _ice(self, connection: Connection, frame: Frame) -> None:
        call = await self._find(frame.call_id)
        if call is None or connection.user_id not in (call.caller, call.callee):
            self._refuse(connection, frame, Why.NOT_FOUND)
            return
        if call.state not in LIVE:
            self._refuse(connection, frame, Why.OVER)
            return
        self._relay.tell_user(
            other(call, connection.user_id),
            encode(
                Frame(
                    type="CALL_ICE",
                    call_id=frame.call_id,
                    from_=str(connection.user_id),
                    ts=self._clock.now_ms(),
                    ice_candidate=frame.ice_candidate,
                    ice_sdp_mid=frame.ice_sdp_mid,
                    ice_sdp_m_line_index=frame.ice_sdp_m_line_index,
                )
            ),
        )

    async def _step(self, connection: Connection, frame: Frame, act: Act) -> None:
        call_id = id_of(frame.call_id)
        if call_id is None:
            self._refuse(connection, frame, Why.NOT_FOUND)
            return
        user = connection.user_id
        done = await self._db.write(actions.step, call_id, act, user, self._clock.now_ms(), frame.call_reason)
        if isinstance(done, Why):
            self._refuse(connection, frame, done)
            return
        if not done.changed:
            return
        self._after(done)
        told = Frame(
            type=act.value,
            call_id=frame.call_id,
            from_=str(user),
            call_reason=frame.call_reason,
            sdp=frame.sdp,
            ts=self._clock.now_ms(),
        )
        self._relay.tell_user(other(done.call, user), encode(told))
        if act is Act.ACCEPT:
            self._stop_ringing_elsewhere(connection, frame)

    def _stop_ringing_elsewhere(self, connection: Connection, frame: Frame) -> None:
        """The callee's other devices, where a user may have several."""
        elsewhere = Frame(
            type=Act.CANCEL.value, call_id=frame.call_id, call_reason=Why.ANSWERED_ELSEWHERE.value
        )
        for device in self._online.of(connection.user_id):
            if device is not connection and device.is_open:
                device.send_critical(encode(elsewhere))

    def _after(self, done: Stepped) -> None:
        call = done.call
        if call.state in LIVE:
            self._keep(call)
        else:
            self._live.pop(call.id, None)
            self._calls.add(CallState(call.state).name.lower())
        timer = self._ringing.pop(call.id, None)
        if timer is not None:
            timer.cancel()

    def _refuse(self, connection: Connection, frame: Frame, why: Why, call_id: int = 0) -> None:
        connection.send_critical(
            encode(
                Frame(
                    type="CALL_ERROR",
                    call_id=str(call_id) if call_id else frame.call_id,
                    client_msg_id=frame.client_msg_id,
                    to=frame.to,
                    call_reason=why.value,
                    reason=why.value,
                    ts=self._clock.now_ms(),
                )
            )
        )

    async def _find(self, text: str | None) -> Call | None:
        call_id = id_of(text)
        if call_id is None:
            return None
        found = self._live.get(call_id)
        if found is None:
            found = await self._db.glance(actions.call, call_id)
            if found is not None and found.state in LIVE:
                self._keep(found)
        return found

    def _keep(self, call: Call) -> None:
        self._live[call.id] = call
        while len(self._live) > MOST_CALLS:
            self._live.popitem(last=False)

    # -- what nobody says

    def _time_is_up(self, call_id: int) -> None:
        self._ringing.pop(call_id, None)
        self._later(self._end(call_id, Act.TIMEOUT))

    async def look(self) -> None:
        """Those of us who are in calls are seen; calls with a side that nobody sees any more are over."""
        now_ms = self._clock.now_ms()
        here = [user for user in await self._db.read(actions.parties) if self._online.of(user)]
        if here:
            await self._db.write(actions.see, here, now_ms)
        if await self._cluster.lock("calls", LOOK_SECONDS / 2) is False:
            return  # another process is looking
        rung_before = now_ms - round(self._settings.ring_seconds * 1000) - 5_000
        lost_before = now_ms - round(LOST_SECONDS * 1000)
        for call_id in await self._db.read(actions.lost, lost_before, rung_before):
            call = await self._db.read(actions.call, call_id)
            if call is not None:
                await self._end(call_id, Act.TIMEOUT if call.state == CallState.RINGING else Act.LOST)

    async def _end(self, call_id: int, act: Act) -> None:
        why = Why.LOST.value if act is Act.LOST else None
        try:
            done = await self._db.write(actions.step, call_id, act, 0, self._clock.now_ms(), why)
        except HoldfastError as error:
            log.warning("call_not_ended", callId=str(call_id), error=error.reason)
            return  # `look` comes again
        if isinstance(done, Why) or not done.changed:
            return
        self._after(done)
        frame_type = Act.TIMEOUT if act is Act.TIMEOUT else Act.END
        frame = encode(
            Frame(type=frame_type.value, call_id=str(call_id), call_reason=why, ts=self._clock.now_ms())
        )
        for user in (done.call.caller, done.call.callee):
            self._relay.tell_user(user, frame)

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
