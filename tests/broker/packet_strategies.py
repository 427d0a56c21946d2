"""Hypothesis strategies for every packet: what a well-behaved peer of a version may send."""

from hypothesis import strategies as st

from holdfast.broker.packets import (
    V5,
    V31,
    V311,
    Auth,
    Connack,
    Connect,
    Disconnect,
    MessageProperties,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Side,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
    Will,
)
from holdfast.broker.packets import reason as reasons

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
LEVEL = st.text(st.characters(exclude_characters="\0+#/", exclude_categories=["Cs"]), max_size=4)
TOPIC = st.lists(LEVEL, min_size=1, max_size=5).map("/".join).filter(bool)
FILTER = st.builds(
    lambda levels, deep: "/".join(levels + ["#"] * deep),
    st.lists(LEVEL | st.just("+"), min_size=1, max_size=5),
    st.booleans(),
).filter(bool)
SHARED = st.builds(lambda group, inner: f"$share/{group}/{inner}", LEVEL.filter(bool), FILTER)
USER = st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple)
PACKET_ID = st.integers(1, 65_535)
U16 = st.integers(0, 65_535)
U32 = st.integers(0, 0xFFFF_FFFF)
BLOB = st.binary(max_size=20)
VARINT = st.sampled_from([1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455]) | st.integers(
    1, 999
)


def maybe(strategy):
    return st.none() | strategy


def of(allowed):
    return st.sampled_from(sorted(allowed))


MESSAGE = st.builds(
    MessageProperties,
    payload_format=maybe(st.integers(0, 1)),
    message_expiry=maybe(U32),
    content_type=maybe(TEXT),
    response_topic=maybe(TOPIC),
    correlation_data=maybe(BLOB),
    user_properties=USER,
).map(lambda found: None if found == MessageProperties() else found)


def wills(version: int):
    return st.builds(
        Will,
        topic=TOPIC,
        payload=BLOB,
        qos=st.integers(0, 2),
        retain=st.booleans(),
        delay=U32 if version == V5 else st.just(0),
        properties=MESSAGE if version == V5 else st.none(),
    )


def connects(version: int):
    names = {"version": st.just(version), "client_id": TEXT, "clean_start": st.booleans(), "keep_alive": U16}
    names |= {"username": maybe(TEXT), "password": maybe(BLOB), "will": maybe(wills(version))}
    if version != V5:
        return st.builds(Connect, **names).filter(lambda c: c.password is None or c.username is not None)
    return st.builds(
        Connect,
        session_expiry=U32,
        receive_maximum=PACKET_ID,
        maximum_packet_size=maybe(st.integers(1, 0xFFFF_FFFF)),
        topic_alias_maximum=U16,
        request_response_information=st.booleans(),
        request_problem_information=st.booleans(),
        authentication_method=TEXT,
        authentication_data=maybe(BLOB),
        user_properties=USER,
        **names,
    )


def connacks(version: int):
    if version != V5:
        codes = st.sampled_from([0x84, 0x85, 0x88, 0x86, 0x87])
        accepted = st.builds(Connack, session_present=st.booleans() if version == V311 else st.just(False))
        return accepted | st.builds(Connack, reason=codes)
    return st.builds(
        Connack,
        session_present=st.booleans(),
        reason=of(reasons.CONNACK_REASONS),
        session_expiry=maybe(U32),
        receive_maximum=PACKET_ID,
        maximum_qos=st.integers(0, 2),
        retain_available=st.booleans(),
        maximum_packet_size=maybe(st.integers(1, 0xFFFF_FFFF)),
        assigned_client_id=maybe(TEXT),
        topic_alias_maximum=U16,
        reason_string=maybe(TEXT),
        wildcards_available=st.booleans(),
        subscription_ids_available=st.booleans(),
        shared_available=st.booleans(),
        server_keep_alive=maybe(U16),
        response_information=maybe(TEXT),
        server_reference=maybe(TEXT),
        authentication_method=maybe(TEXT),
        authentication_data=maybe(BLOB),
        user_properties=USER,
    ).filter(lambda c: not (c.session_present and c.reason))


def publishes(version: int, side: Side):
    v5 = version == V5
    packets = st.builds(
        Publish,
        topic=TOPIC,
        payload=st.binary(max_size=300),
        qos=st.integers(0, 2),
        retain=st.booleans(),
        dup=st.booleans(),
        packet_id=PACKET_ID,
        properties=MESSAGE if v5 else st.none(),
        topic_alias=U16 if v5 else st.just(0),
        subscription_ids=st.lists(VARINT, max_size=3).map(tuple)
        if v5 and side is Side.CLIENT
        else st.just(()),
    )
    return packets.map(
        lambda p: (
            p
            if p.qos
            else Publish(
                p.topic, p.payload, 0, p.retain, False, 0, p.properties, p.topic_alias, p.subscription_ids
            )
        )
    )


def acknowledgements(version: int):
    if version != V5:
        return st.one_of(*(st.builds(kind, PACKET_ID) for kind in (Puback, Pubrec, Pubrel, Pubcomp)))
    told = (maybe(TEXT), USER)
    return st.one_of(
        *(st.builds(kind, PACKET_ID, of(reasons.PUBLISH_ACK_REASONS), *told) for kind in (Puback, Pubrec)),
        *(st.builds(kind, PACKET_ID, of(reasons.RELEASE_REASONS), *told) for kind in (Pubrel, Pubcomp)),
    )


def subscribes(version: int):
    if version != V5:
        each = st.builds(Subscription, FILTER, st.integers(0, 2))
        return st.builds(Subscribe, PACKET_ID, st.lists(each, min_size=1, max_size=4).map(tuple))
    options = (st.booleans(), st.integers(0, 2))
    each = st.builds(Subscription, FILTER, st.integers(0, 2), st.booleans(), *options)
    shared = st.builds(Subscription, SHARED, st.integers(0, 2), st.just(False), *options)
    many = st.lists(each | shared, min_size=1, max_size=4).map(tuple)
    return st.builds(Subscribe, PACKET_ID, many, st.just(0) | VARINT, USER).filter(
        lambda packet: not any(s.no_local and s.filter.startswith("$share/") for s in packet.subscriptions)
    )


def subacks(version: int):
    if version != V5:
        return st.builds(Suback, PACKET_ID, st.lists(of({0, 1, 2, 0x80}), max_size=4).map(tuple))
    many = st.lists(of(reasons.SUBACK_REASONS), max_size=4).map(tuple)
    return st.builds(Suback, PACKET_ID, many, maybe(TEXT), USER)


def unsubscribes(version: int):
    filters = st.lists(FILTER if version != V5 else FILTER | SHARED, min_size=1, max_size=4).map(tuple)
    return st.builds(Unsubscribe, PACKET_ID, filters, USER if version == V5 else st.just(()))


def unsubacks(version: int):
    if version != V5:
        return st.builds(Unsuback, PACKET_ID)
    many = st.lists(of(reasons.UNSUBACK_REASONS), max_size=4).map(tuple)
    return st.builds(Unsuback, PACKET_ID, many, maybe(TEXT), USER)


def disconnects(version: int, side: Side):
    if version != V5:
        return st.just(Disconnect())
    from_client = side is Side.SERVER
    allowed = reasons.CLIENT_DISCONNECT_REASONS if from_client else reasons.SERVER_DISCONNECT_REASONS
    return st.builds(
        Disconnect,
        reason=of(allowed),
        session_expiry=maybe(U32) if from_client else st.none(),
        reason_string=maybe(TEXT),
        server_reference=maybe(TEXT),
        user_properties=USER,
    )


def auths(side: Side):
    allowed = reasons.CLIENT_AUTH_REASONS if side is Side.SERVER else reasons.SERVER_AUTH_REASONS
    return st.builds(
        Auth,
        reason=of(allowed),
        authentication_method=TEXT,
        authentication_data=maybe(BLOB),
        reason_string=maybe(TEXT),
        user_properties=USER,
    )


def packets(version: int, side: Side):
    """Anything that `side` may receive after the connection is made."""
    both = [publishes(version, side), acknowledgements(version)]
    if version == V5:
        both.append(auths(side))
    if side is Side.SERVER:
        ours = [subscribes(version), unsubscribes(version), st.just(Pingreq()), disconnects(version, side)]
    else:
        ours = [connacks(version), subacks(version), unsubacks(version), st.just(Pingresp())]
        if version == V5:
            ours.append(disconnects(version, side))
    return st.one_of(*both, *ours)


VERSIONS = st.sampled_from([V31, V311, V5])
SIDES = st.sampled_from(list(Side))
CONVERSATIONS = st.tuples(VERSIONS, SIDES).flatmap(
    lambda who: st.tuples(st.just(who[0]), st.just(who[1]), st.lists(packets(*who), min_size=1, max_size=6))
)
