"""Wire examples that are wrong: each with the reason and the clause it is refused for.

They are what a connection may receive after its CONNECT; those about CONNECT itself, and about the first
packet, are in FIRST.
"""

from holdfast.broker.packets import V5, V31, V311, Reason
from tests.broker.wire_examples import ALL, BAD, CLIENT, SERVER, V3, Bad, malformed, violation, wire

FIRST: list[Bad] = []
"""Refused as the first bytes of a connection."""


def first(
    name: str, version: int, written: str, clause: str, reason: Reason = Reason.MALFORMED_PACKET
) -> None:
    FIRST.append(Bad(name, version, SERVER, wire(written), reason, clause))


VERSION = Reason.UNSUPPORTED_PROTOCOL_VERSION
PROTOCOL = Reason.PROTOCOL_ERROR

# The first packet
first("a PINGREQ before CONNECT", V5, "c0 00", "MQTT-3.1.0-1", PROTOCOL)
first("HTTP before CONNECT", V5, "474554202f", "MQTT-3.1.0-1", PROTOCOL)
first("CONNECT with reserved flags", V311, '11 0d "MQTT" 04 02 0000 "c"', "MQTT-2.1.3-1")
first("CONNECT of another protocol", V311, '10 0d "MQTX" 04 02 0000 "c"', "MQTT-3.1.2-1", VERSION)
first(
    "CONNECT with an old name and a new level", V311, '10 0f "MQIsdp" 04 02 0000 "c"', "MQTT-3.1.2-2", VERSION
)
first("CONNECT with a new name and an old level", V31, '10 0d "MQTT" 03 02 0000 "c"', "MQTT-3.1.2-2", VERSION)
first("CONNECT of version 6", V5, '10 0e "MQTT" 06 02 0000 00 "c"', "MQTT-3.1.2-2", VERSION)
for level, tail in ((V311, '0000 "c"'), (V5, '0000 00 "c"')):
    size = 13 if level == V311 else 14
    first(
        "CONNECT with the reserved flag", level, f'10 {size:02x} "MQTT" {level:02x} 03 {tail}', "MQTT-3.1.2-3"
    )
    first("CONNECT with will QoS 3", level, f'10 {size:02x} "MQTT" {level:02x} 1e {tail}', "MQTT-3.1.2-12")
    first(
        "CONNECT with will QoS and no will",
        level,
        f'10 {size:02x} "MQTT" {level:02x} 0a {tail}',
        "MQTT-3.1.2-11",
    )
    first(
        "CONNECT with will retain, no will",
        level,
        f'10 {size:02x} "MQTT" {level:02x} 22 {tail}',
        "MQTT-3.1.2-13",
    )
    first(
        "CONNECT that ends before its user name",
        level,
        f'10 {size:02x} "MQTT" {level:02x} 82 {tail}',
        "1.5.2",
    )
    first(
        "CONNECT with bytes left over", level, f'10 {size + 1:02x} "MQTT" {level:02x} 02 {tail} 00', "2.1.4"
    )
first("CONNECT with a password and no user", V311, '10 10 "MQTT" 04 42 0000 "c" "x"', "MQTT-3.1.2-22 (3.1.1)")
first("CONNECT with a client id that is not UTF-8", V311, '10 0d "MQTT" 04 02 0000 0001 ff', "MQTT-1.5.4-1")
first("CONNECT with a surrogate", V311, '10 0f "MQTT" 04 02 0000 0003 eda080', "MQTT-1.5.4-1")
first(
    "CONNECT with a user name that is not UTF-8", V311, '10 10 "MQTT" 04 82 0000 "c" 0001 ff', "MQTT-1.5.4-1"
)
first(
    "CONNECT with a will topic that is not UTF-8",
    V311,
    '10 12 "MQTT" 04 06 0000 "c" 0001 ff 0000',
    "MQTT-1.5.4-1",
)
first("CONNECT with U+0000", V311, '10 0d "MQTT" 04 02 0000 0001 00', "MQTT-1.5.4-2")
first("CONNECT with a wildcard will topic", V311, '10 12 "MQTT" 04 06 0000 "c" "+" 0000', "MQTT-4.7.0-1")
first("CONNECT with an empty will topic", V5, '10 13 "MQTT" 05 06 0000 00 "c" 00 "" 0000', "MQTT-4.7.3-1")
first("CONNECT with a length too long", V5, '10 8e00 "MQTT" 05 02 0000 00 "c"', "MQTT-1.5.5-1")
first("CONNECT that ends in its flags", V311, '10 07 "MQTT" 04', "2.1.4")
first("a length of five bytes", V311, "10 ffffffff7f", "2.1.4")
for name, fields, clause in (
    ("receive maximum 0", "21 0000", "3.1.2.11.3"),
    ("maximum packet size 0", "27 00000000", "3.1.2.11.4"),
    ("request problem information 2", "17 02", "3.1.2.11.7"),
    ("request response information 2", "19 02", "3.1.2.11.6"),
    ("authentication data alone", "16 0000", "3.1.2.11.10"),
    ("session expiry twice", "11 00000000 11 00000000", "2.2.2.2"),
):
    size = len(bytes.fromhex(fields))
    first(
        f"CONNECT with {name}",
        V5,
        f'10 {14 + size:02x} "MQTT" 05 02 0000 {size:02x} {fields} "c"',
        clause,
        PROTOCOL,
    )
first("CONNECT with a property of PUBLISH", V5, '10 11 "MQTT" 05 02 0000 03 23 0001 "c"', "2.2.2.2")
first("CONNECT with an unknown property", V5, '10 10 "MQTT" 05 02 0000 02 7f 00 "c"', "2.2.2.2")
first("CONNECT with will delay outside the will", V5, '10 13 "MQTT" 05 02 0000 05 18 00000000 "c"', "2.2.2.2")
first("CONNECT with properties longer than it", V5, '10 0e "MQTT" 05 02 0000 7f "c"', "2.2.2.1")
first("CONNECT with a cut property", V5, '10 10 "MQTT" 05 02 0000 02 21 00 "c"', "1.5.2")

# Fixed header
malformed("packet type 0", ALL, SERVER, "00 00", "2.1.2")
malformed("packet type 15", V3, SERVER, "f0 00", "2.1.2")
violation("a second CONNECT", ALL, SERVER, '10 0d "MQTT" 04 02 0000 "c"', "MQTT-3.1.0-2")
for written in ("41 02 0001", "52 02 0001", "60 02 0001", "71 02 0001", "c1 00", "e8 00"):
    malformed(f"reserved flags {written[:2]}", ALL, SERVER, written, "MQTT-2.1.3-1")
malformed("reserved flags of SUBSCRIBE", ALL, SERVER, '80 06 0001 "a" 00', "MQTT-2.1.3-1")
malformed("reserved flags of UNSUBSCRIBE", ALL, SERVER, 'a0 05 0001 "a"', "MQTT-2.1.3-1")
malformed("SUBSCRIBE with DUP, which only 3.1 has", (V311, V5), SERVER, '8a 06 0001 "a" 00', "MQTT-2.1.3-1")
malformed("reserved flags of AUTH", (V5,), SERVER, "f1 00", "MQTT-2.1.3-1")
for written in ("20 02 0000", "90 03 000100", "b0 02 0001", "d0 00"):
    violation(f"a server's packet {written[:2]} to a server", ALL, SERVER, written, "2.1.2")
for written in ('82 06 0001 "a" 00', 'a2 05 0001 "a"', "c0 00", '10 0d "MQTT" 04 02 0000 "c"'):
    violation(f"a client's packet {written[:2]} to a client", ALL, CLIENT, written, "2.1.2")
violation("DISCONNECT to a client", V3, CLIENT, "e0 00", "2.1.2")
malformed("a length longer than it needs", (V5,), SERVER, "c0 8000", "MQTT-1.5.5-1")
malformed("a length of five bytes", ALL, SERVER, "30 ffffffff01", "2.1.4")

# PUBLISH
malformed("PUBLISH QoS 3", ALL, SERVER, '36 06 "a" 0001 00', "MQTT-3.3.1-4")
malformed("PUBLISH QoS 0 with DUP", ALL, SERVER, '38 04 "a" 00', "MQTT-3.3.1-2")
malformed("PUBLISH with nothing", ALL, SERVER, "30 00", "3.3.2.1")
malformed("PUBLISH with a topic that is cut", ALL, SERVER, "30 03 000261", "3.3.2.1")
malformed("PUBLISH without its packet identifier", ALL, SERVER, '32 04 "a" 00', "3.3.2.2")
violation("PUBLISH with packet identifier 0", ALL, SERVER, '32 06 "a" 0000 00', "MQTT-2.2.1-3")
for written in ("+", "#", "a/+/b", "a#"):
    size = len(written) + 3
    malformed(f"PUBLISH to {written}", ALL, SERVER, f'30 {size:02x} "{written}" 00', "MQTT-3.3.2-2")
malformed("PUBLISH to U+0000", ALL, SERVER, "30 04 0001 00 00", "MQTT-1.5.4-2")
malformed("PUBLISH to a surrogate", ALL, SERVER, "30 06 0003 edbfbf 00", "MQTT-1.5.4-1")
malformed("PUBLISH to overlong UTF-8", ALL, SERVER, "30 05 0002 c080 00", "MQTT-1.5.4-1")
malformed("PUBLISH to no topic", V3, SERVER, "30 03 0000 00", "MQTT-4.7.3-1")
violation("PUBLISH to no topic and no alias", (V5,), SERVER, "30 03 0000 00", "3.3.2.1")
violation("PUBLISH to no topic, with other properties", (V5,), SERVER, "30 05 0000 02 01 00", "3.3.2.1")
malformed("PUBLISH without properties", (V5,), SERVER, '30 03 "a"', "2.1.4")
for name, fields, clause in (
    ("payload format 2", "01 02", "2.2.2.2"),
    ("a subscription identifier from a client", "0b 01", "MQTT-3.3.4-6"),
    ("subscription identifier 0", "0b 00", "3.3.2.3.8"),
    ("two topic aliases", "23 0001 23 0001", "2.2.2.2"),
    ("two content types", "03 0000 03 0000", "2.2.2.2"),
    ("a wildcard response topic", "08 0001 2b", "MQTT-3.3.2-14"),
    ("an empty response topic", "08 0000", "MQTT-3.3.2-14"),
):
    size = len(bytes.fromhex(fields))
    violation(f"PUBLISH with {name}", (V5,), SERVER, f'30 {4 + size:02x} "a" {size:02x} {fields}', clause)
PUBLISH_ALIAS_0 = wire('30 07 "a" 03 23 0000')
BAD.append(
    Bad("PUBLISH with topic alias 0", V5, SERVER, PUBLISH_ALIAS_0, Reason.TOPIC_ALIAS_INVALID, "MQTT-3.3.2-8")
)
malformed("PUBLISH with a property of CONNECT", (V5,), SERVER, '30 07 "a" 03 21 0001', "2.2.2.2")
malformed("PUBLISH with properties longer than it", (V5,), SERVER, '30 05 "a" 7f 00', "2.2.2.1")
malformed(
    "PUBLISH with a content type that is not UTF-8", (V5,), SERVER, '30 08 "a" 04 03 0001 ff', "MQTT-1.5.4-1"
)
malformed(
    "PUBLISH with user properties that are not UTF-8",
    (V5,),
    SERVER,
    '30 0a "a" 06 26 0000 0001 ff',
    "MQTT-1.5.4-1",
)
malformed(
    "PUBLISH with a response topic that is not UTF-8",
    (V5,),
    SERVER,
    '30 08 "a" 04 08 0001 ff',
    "MQTT-1.5.4-1",
)
malformed("PUBLISH with a padded property length", (V5,), SERVER, '30 05 "a" 8000', "MQTT-1.5.5-1")
malformed("PUBLISH with a property length of five bytes", (V5,), SERVER, '30 08 "a" 8080808001', "1.5.5")

# PUBACK, PUBREC, PUBREL, PUBCOMP
for head, name, number in (
    ("40", "PUBACK", 4),
    ("50", "PUBREC", 5),
    ("62", "PUBREL", 6),
    ("70", "PUBCOMP", 7),
):
    violation(f"{name} of identifier 0", ALL, SERVER, f"{head} 02 0000", "MQTT-2.2.1-5")
    malformed(f"{name} without identifier", ALL, SERVER, f"{head} 01 00", "2.2.1")
    malformed(f"{name} with more than an identifier", V3, SERVER, f"{head} 03 0001 00", "2.1.4")
    violation(f"{name} with an unknown reason", (V5,), SERVER, f"{head} 03 0001 01", f"MQTT-3.{number}.2-1")
    malformed(f"{name} with a foreign property", (V5,), SERVER, f"{head} 06 0001 00 02 01 00", "2.2.2.2")
    malformed(f"{name} with bytes left over", (V5,), SERVER, f"{head} 05 0001 00 00 00", "2.1.4")

# SUBSCRIBE, UNSUBSCRIBE
for version, properties in ((V31, ""), (V311, ""), (V5, "00")):
    n = len(properties) // 2
    one = (version,)
    violation("SUBSCRIBE of nothing", one, SERVER, f"82 {2 + n:02x} 0001 {properties}", "MQTT-3.8.3-2")
    violation("UNSUBSCRIBE of nothing", one, SERVER, f"a2 {2 + n:02x} 0001 {properties}", "MQTT-3.10.3-2")
    violation(
        "SUBSCRIBE identifier 0", one, SERVER, f'82 {6 + n:02x} 0000 {properties} "a" 00', "MQTT-2.2.1-3"
    )
    violation(
        "UNSUBSCRIBE identifier 0", one, SERVER, f'a2 {5 + n:02x} 0000 {properties} "a"', "MQTT-2.2.1-3"
    )
    malformed("SUBSCRIBE that is cut", one, SERVER, f'82 {5 + n:02x} 0001 {properties} "a"', "2.1.4")
    for pattern, clause in (
        ("", "MQTT-4.7.3-1"),
        ("#/a", "MQTT-4.7.1-1"),
        ("a/#/b", "MQTT-4.7.1-1"),
        ("a#", "MQTT-4.7.1-1"),
        ("##", "MQTT-4.7.1-1"),
        ("a+", "MQTT-4.7.1-2"),
        ("+a/b", "MQTT-4.7.1-2"),
        ("a/++", "MQTT-4.7.1-2"),
    ):
        size = 5 + n + len(pattern)
        malformed(
            f"SUBSCRIBE to {pattern!r}",
            one,
            SERVER,
            f'82 {size:02x} 0001 {properties} "{pattern}" 00',
            clause,
        )
        malformed(
            f"UNSUBSCRIBE from {pattern!r}",
            one,
            SERVER,
            f'a2 {size - 1:02x} 0001 {properties} "{pattern}"',
            clause,
        )
malformed("SUBSCRIBE to what is not UTF-8", V3, SERVER, "82 06 0001 0001 ff 00", "MQTT-1.5.4-1")
malformed("SUBSCRIBE to what is not UTF-8", (V5,), SERVER, "82 07 0001 00 0001 ff 00", "MQTT-1.5.4-1")
malformed("UNSUBSCRIBE from what is not UTF-8", V3, SERVER, "a2 05 0001 0001 ff", "MQTT-1.5.4-1")
malformed("UNSUBSCRIBE from what is not UTF-8", (V5,), SERVER, "a2 06 0001 00 0001 ff", "MQTT-1.5.4-1")
malformed("SUBSCRIBE at QoS 3", V3, SERVER, '82 06 0001 "a" 03', "MQTT-3.8.3-4 (3.1.1)")
malformed("SUBSCRIBE with options of 5.0", V3, SERVER, '82 06 0001 "a" 04', "MQTT-3.8.3-4 (3.1.1)")
violation("SUBSCRIBE at QoS 3", (V5,), SERVER, '82 07 0001 00 "a" 03', "3.8.3.1")
violation("SUBSCRIBE with retain handling 3", (V5,), SERVER, '82 07 0001 00 "a" 30', "3.8.3.1")
malformed("SUBSCRIBE with reserved options", (V5,), SERVER, '82 07 0001 00 "a" 40', "MQTT-3.8.3-5")
violation("SUBSCRIBE shared and no local", (V5,), SERVER, '82 10 0001 00 "$share/g/a" 04', "MQTT-3.8.3-4")
violation("SUBSCRIBE with identifier 0", (V5,), SERVER, '82 09 0001 02 0b00 "a" 00', "3.8.2.1.2")
violation("SUBSCRIBE with two identifiers", (V5,), SERVER, '82 0b 0001 04 0b01 0b02 "a" 00', "2.2.2.2")
for pattern, clause in (
    ("$share/", "MQTT-4.8.2-1"),
    ("$share//a", "MQTT-4.8.2-1"),
    ("$share/g", "MQTT-4.8.2-2"),
    ("$share/g/", "MQTT-4.8.2-2"),
    ("$share/+/a", "MQTT-4.8.2-2"),
    ("$share/g#/a", "MQTT-4.8.2-2"),
    ("$share/g/a#", "MQTT-4.7.1-1"),
):
    malformed(
        f"SUBSCRIBE to {pattern}", (V5,), SERVER, f'82 {len(pattern) + 6:02x} 0001 00 "{pattern}" 00', clause
    )

# PINGREQ, DISCONNECT, AUTH
malformed("PINGREQ with a body", ALL, SERVER, "c0 01 00", "2.1.4")
malformed("PINGRESP with a body", ALL, CLIENT, "d0 01 00", "2.1.4")
malformed("DISCONNECT with a body", V3, SERVER, "e0 01 00", "2.1.4")
violation("DISCONNECT with a server's reason", (V5,), SERVER, "e0 01 8e", "MQTT-3.14.2-1")
violation("DISCONNECT with an unknown reason", (V5,), SERVER, "e0 01 05", "MQTT-3.14.2-1")
violation("DISCONNECT with will from a server", (V5,), CLIENT, "e0 01 04", "MQTT-3.14.2-1")
violation(
    "DISCONNECT with an expiry from a server", (V5,), CLIENT, "e0 07 00 05 11 00000001", "MQTT-3.14.2-2"
)
malformed("DISCONNECT with bytes left over", (V5,), SERVER, "e0 03 00 00 00", "2.1.4")
violation("AUTH with an unknown reason", (V5,), SERVER, "f0 02 01 00", "MQTT-3.15.2-1")
violation("AUTH success from a client", (V5,), SERVER, "f0 00", "MQTT-3.15.2-1")
violation("AUTH without a method", (V5,), SERVER, "f0 02 18 00", "3.15.2.2.2")

# CONNACK, SUBACK, UNSUBACK
malformed("CONNACK with reserved flags", (V311, V5), CLIENT, "20 02 02 00", "MQTT-3.2.2-1")
violation("CONNACK with a reserved code", V3, CLIENT, "20 02 00 06", "3.2.2.3 (3.1.1)")
violation("CONNACK that refuses a present session", (V311,), CLIENT, "20 02 01 05", "MQTT-3.2.2-4 (3.1.1)")
violation("CONNACK that refuses a present session", (V5,), CLIENT, "20 03 01 87 00", "MQTT-3.2.2-6")
violation("CONNACK with an unknown reason", (V5,), CLIENT, "20 03 00 01 00", "MQTT-3.2.2-8")
violation("CONNACK with maximum QoS 2", (V5,), CLIENT, "20 05 00 00 02 24 02", "2.2.2.2")
violation("SUBACK with a reason of 5.0", V3, CLIENT, "90 03 0001 87", "MQTT-3.9.3-2")
violation("SUBACK with an unknown reason", (V5,), CLIENT, "90 04 0001 00 03", "MQTT-3.9.3-2")
violation("UNSUBACK with an unknown reason", (V5,), CLIENT, "b0 04 0001 00 01", "MQTT-3.11.3-2")
malformed("UNSUBACK with more than an identifier", V3, CLIENT, "b0 03 0001 00", "2.1.4")

__all__ = ["BAD", "FIRST"]
