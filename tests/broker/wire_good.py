"""Wire examples that are right: canonical bytes beside their packet, for every packet of every version."""

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
    Reason,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
    Will,
)
from tests.broker.wire_examples import ALL, CLIENT, GOOD, SERVER, V3, both, good

# CONNECT
good(
    "CONNECT 3.1",
    (V31,),
    SERVER,
    '10 0f "MQIsdp" 03 02 003c "c"',
    Connect(version=3, client_id="c", keep_alive=60),
)
good(
    "CONNECT",
    (V311,),
    SERVER,
    '10 0d "MQTT" 04 00 0000 "c"',
    Connect(version=4, client_id="c", clean_start=False),
)
good("CONNECT without a client id", (V311,), SERVER, '10 0c "MQTT" 04 02 0000 ""', Connect(version=4))
good("CONNECT", (V5,), SERVER, '10 0d "MQTT" 05 02 0000 00 ""', Connect(version=5))
good(
    "CONNECT with user, password and will",
    (V311,),
    SERVER,
    '10 1b "MQTT" 04 ec 000a "c" "w" 0002 6279 "u" "p!"',
    Connect(
        version=4,
        client_id="c",
        clean_start=False,
        keep_alive=10,
        will=Will(topic="w", payload=b"by", qos=1, retain=True),
        username="u",
        password=b"p!",
    ),
)
good(
    "CONNECT with a password and no user name",
    (V5,),
    SERVER,
    '10 11 "MQTT" 05 42 0000 00 "c" 0001 ff',
    Connect(version=5, client_id="c", password=b"\xff"),
)
good(
    "CONNECT with every property",
    (V5,),
    SERVER,
    '10 43 "MQTT" 05 02 0005 34 11 ffffffff 21 000a 27 00001000 22 0014 19 01 17 00 15 "SCRAM" 16 0002 00ff'
    '26 "a" "1" 26 "a" "2" 26 "" "" "cl"',
    Connect(
        version=5,
        client_id="cl",
        keep_alive=5,
        session_expiry=0xFFFFFFFF,
        receive_maximum=10,
        maximum_packet_size=4096,
        topic_alias_maximum=20,
        request_response_information=True,
        request_problem_information=False,
        authentication_method="SCRAM",
        authentication_data=b"\x00\xff",
        user_properties=(("a", "1"), ("a", "2"), ("", "")),
    ),
)
good(
    "CONNECT with a will and its properties",
    (V5,),
    SERVER,
    '10 37 "MQTT" 05 16 0000 00 "c" 21 18 0000003c 01 01 02 0000000a 03 "t" 08 "r/t" 09 0001 ff 26 "k" "v"'
    '"w/t" 0000',
    Connect(
        version=5,
        client_id="c",
        will=Will(
            topic="w/t",
            qos=2,
            delay=60,
            properties=MessageProperties(
                payload_format=1,
                message_expiry=10,
                content_type="t",
                response_topic="r/t",
                correlation_data=b"\xff",
                user_properties=(("k", "v"),),
            ),
        ),
    ),
)

# CONNACK
good("CONNACK accepted", V3, CLIENT, "20 02 00 00", Connack())
good("CONNACK session present", (V311,), CLIENT, "20 02 01 00", Connack(session_present=True))
for code, reason in enumerate(
    (
        Reason.UNSUPPORTED_PROTOCOL_VERSION,
        Reason.CLIENT_ID_NOT_VALID,
        Reason.SERVER_UNAVAILABLE,
        Reason.BAD_USER_NAME_OR_PASSWORD,
        Reason.NOT_AUTHORIZED,
    ),
    start=1,
):
    good(f"CONNACK refused {code}", V3, CLIENT, f"20 02 00 0{code}", Connack(reason=reason))
good("CONNACK accepted", (V5,), CLIENT, "20 03 01 00 00", Connack(session_present=True))
good("CONNACK refused", (V5,), CLIENT, "20 03 00 8a 00", Connack(reason=Reason.BANNED))
good(
    "CONNACK with every property",
    (V5,),
    CLIENT,
    '20 52 00 00 4f 11 00000e10 21 0040 24 01 25 00 27 00100000 12 "id" 22 000a 1f "why" 28 00 29 00 2a 00'
    '13 001e 1a "resp" 1c "other" 15 "JWT" 16 0001 2a 26 "k" "v" 26 "k" "w"',
    Connack(
        session_expiry=3600,
        receive_maximum=64,
        maximum_qos=1,
        retain_available=False,
        maximum_packet_size=1_048_576,
        assigned_client_id="id",
        topic_alias_maximum=10,
        reason_string="why",
        wildcards_available=False,
        subscription_ids_available=False,
        shared_available=False,
        server_keep_alive=30,
        response_information="resp",
        server_reference="other",
        authentication_method="JWT",
        authentication_data=b"*",
        user_properties=(("k", "v"), ("k", "w")),
    ),
)

# PUBLISH
both("PUBLISH QoS 0", V3, '30 07 "a/b" 6869', Publish("a/b", b"hi"))
both("PUBLISH QoS 0", (V5,), '30 08 "a/b" 00 6869', Publish("a/b", b"hi"))
both("PUBLISH retained and empty", V3, '31 03 "a"', Publish("a", retain=True))
both("PUBLISH QoS 1 again", V3, '3a 06 "a" 0001 21', Publish("a", b"!", qos=1, dup=True, packet_id=1))
both("PUBLISH QoS 2", V3, '34 06 "a" ffff 21', Publish("a", b"!", qos=2, packet_id=65535))
both(
    "PUBLISH QoS 2 retained",
    (V5,),
    '35 07 "a" 0007 00 21',
    Publish("a", b"!", qos=2, retain=True, packet_id=7),
)
both("PUBLISH with a byte order mark", ALL[:2], "30 06 0004 efbbbf61", Publish("\ufeffa"))
both("PUBLISH to a long topic", V3, "30 d204 0250 " + "61" * 592, Publish("a" * 592))
both(
    "PUBLISH with every property of a message",
    (V5,),
    '30 26 "t" 21 01 00 02 00000000 03 "" 08 "r" 09 0002 beef 26 "z" "1" 26 "a" "2" 58',
    Publish(
        "t",
        b"X",
        properties=MessageProperties(
            payload_format=0,
            message_expiry=0,
            content_type="",
            response_topic="r",
            correlation_data=b"\xbe\xef",
            user_properties=(("z", "1"), ("a", "2")),
        ),
    ),
)
both("PUBLISH that names an alias", (V5,), '30 08 "t" 03 23 0001 2a', Publish("t", b"*", topic_alias=1))
both(
    "PUBLISH by alias alone",
    (V5,),
    '32 08 "" 0009 03 23 ffff',
    Publish("", qos=1, packet_id=9, topic_alias=65535),
)
good(
    "PUBLISH with subscription identifiers",
    (V5,),
    CLIENT,
    '30 0c "t" 07 0b 01 0b ffffff7f 2a',
    Publish("t", b"*", subscription_ids=(1, 268_435_455)),
)

# PUBACK, PUBREC, PUBREL, PUBCOMP
for first, kind in (("40", Puback), ("50", Pubrec), ("62", Pubrel), ("70", Pubcomp)):
    NAME = kind.__name__.upper()
    both(NAME, ALL, f"{first} 02 000a", kind(10))
    worst = Reason.PACKET_ID_NOT_FOUND if kind in (Pubrel, Pubcomp) else Reason.QUOTA_EXCEEDED
    both(f"{NAME} with a reason", (V5,), f"{first} 03 000a {worst:02x}", kind(10, worst))
    both(
        f"{NAME} with properties",
        (V5,),
        f'{first} 10 000a {worst:02x} 0c 1f "no" 26 "k" "v"',
        kind(10, worst, "no", (("k", "v"),)),
    )

# SUBSCRIBE, SUBACK
good(
    "SUBSCRIBE",
    V3,
    SERVER,
    '82 15 0001 "a/+" 00 "#" 01 "$SYS/#"02',
    Subscribe(1, (Subscription("a/+", 0), Subscription("#", 1), Subscription("$SYS/#", 2))),
)
good(
    "SUBSCRIBE",
    (V5,),
    SERVER,
    '82 1a 0001 00 "a" 00 "b" 2e "$share/g/c/#" 01',
    Subscribe(
        1,
        (
            Subscription("a", 0),
            Subscription("b", 2, no_local=True, retain_as_published=True, retain_handling=2),
            Subscription("$share/g/c/#", 1),
        ),
    ),
)
good(
    "SUBSCRIBE with properties",
    (V5,),
    SERVER,
    '82 10 0002 09 0b 8001 26 "k" "" "t" 10',
    Subscribe(2, (Subscription("t", 0, retain_handling=1),), 128, (("k", ""),)),
)
good("SUBACK", V3, CLIENT, "90 06 0001 00010280", Suback(1, (0, 1, 2, 0x80)))
good("SUBACK", (V5,), CLIENT, "90 07 0001 00 00028fa2", Suback(1, (0, 2, 0x8F, 0xA2)))
good(
    "SUBACK with properties",
    (V5,),
    CLIENT,
    '90 10 0001 0c 1f "no" 26 "k" "v" 97',
    Suback(1, (0x97,), "no", (("k", "v"),)),
)

# UNSUBSCRIBE, UNSUBACK
good("UNSUBSCRIBE", V3, SERVER, 'a2 08 0003 "a" "#"', Unsubscribe(3, ("a", "#")))
good(
    "UNSUBSCRIBE",
    (V5,),
    SERVER,
    'a2 0d 0003 05 26 0000 0000 "a/b"',
    Unsubscribe(3, ("a/b",), (("", ""),)),
)
good("UNSUBACK", V3, CLIENT, "b0 02 0003", Unsuback(3))
good("UNSUBACK", (V5,), CLIENT, "b0 05 0003 00 0011", Unsuback(3, (0, 0x11)))
good(
    "UNSUBACK with properties",
    (V5,),
    CLIENT,
    'b0 10 0003 0c 1f "no" 26 "k" "v" 87',
    Unsuback(3, (0x87,), "no", (("k", "v"),)),
)

# PINGREQ, PINGRESP, DISCONNECT, AUTH
good("PINGREQ", ALL, SERVER, "c0 00", Pingreq())
good("PINGRESP", ALL, CLIENT, "d0 00", Pingresp())
good("DISCONNECT", ALL, SERVER, "e0 00", Disconnect())
good("DISCONNECT with will", (V5,), SERVER, "e0 01 04", Disconnect(reason=Reason.DISCONNECT_WITH_WILL))
good(
    "DISCONNECT with properties",
    (V5,),
    SERVER,
    'e0 13 00 11 11 0000000a 1f "ok" 26 "k" "v"',
    Disconnect(session_expiry=10, reason_string="ok", user_properties=(("k", "v"),)),
)
good("DISCONNECT from the server", (V5,), CLIENT, "e0 01 8e", Disconnect(reason=Reason.SESSION_TAKEN_OVER))
good(
    "DISCONNECT to another server",
    (V5,),
    CLIENT,
    'e0 09 9c 07 1c "h:18"',
    Disconnect(reason=Reason.USE_ANOTHER_SERVER, server_reference="h:18"),
)
good(
    "AUTH to authenticate again",
    (V5,),
    SERVER,
    'f0 08 19 06 15 "JWT"',
    Auth(reason=Reason.REAUTHENTICATE, authentication_method="JWT"),
)
good("AUTH success", (V5,), CLIENT, "f0 00", Auth())
good(
    "AUTH with every property",
    (V5,),
    CLIENT,
    'f0 18 18 16 15 "JWT" 16 0001 01 1f "go" 26 "k" "v"',
    Auth(
        reason=Reason.CONTINUE_AUTHENTICATION,
        authentication_method="JWT",
        authentication_data=b"\x01",
        reason_string="go",
        user_properties=(("k", "v"),),
    ),
)

__all__ = ["GOOD"]
