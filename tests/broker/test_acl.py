"""Mosquitto's ACL files: what a line grants, and to whom."""

import pytest

from holdfast.broker.acl import Acl, AclFileError, Client, Rule, parse_acl

FILE = """
# for clients without a name
topic read news/#
topic deny news/secret

user ann
topic room/+/temperature
topic read log/#
topic write log/mine
topic deny room/cellar/#
topic read a topic with spaces

user bob
topic write room/1/light

pattern readwrite user/%u/#
pattern write client/%c/state
pattern deny user/%u/locked
"""
ACL = parse_acl(FILE)
ANN, BOB, NOBODY = Client("c1", "ann"), Client("c2", "bob"), Client("c3")


@pytest.mark.parametrize(
    ("client", "topic", "publish", "receive"),
    [
        (NOBODY, "news/today", False, True),
        (NOBODY, "news/secret", False, False),
        (NOBODY, "client/c3/state", True, False),
        (NOBODY, "user//x", False, False),
        (NOBODY, "user/%u/x", False, False),
        (ANN, "news/today", False, False),
        (ANN, "room/1/temperature", True, True),
        (ANN, "room/cellar/temperature", False, False),
        (ANN, "log/x", False, True),
        (ANN, "log/mine", True, True),
        (ANN, "a topic with spaces", False, True),
        (ANN, "user/ann/x/y", True, True),
        (ANN, "user/ann", True, True),
        (ANN, "user/ann/locked", False, False),
        (ANN, "user/bob/x", False, False),
        (ANN, "client/c1/state", True, False),
        (ANN, "client/c2/state", False, False),
        (BOB, "room/1/light", True, False),
        (Client("c4", "eve"), "room/1/light", False, False),
        (Client("c4", "eve"), "user/eve/x", True, True),
    ],
)
def test_a_line_grants_what_it_says_and_nothing_else_does(
    client: Client, topic: str, publish: bool, receive: bool
) -> None:
    assert (ACL.may_publish(client, topic), ACL.may_receive(client, topic)) == (publish, receive)


@pytest.mark.parametrize("name", ["ann/x", "+", "#", "a+b", ""])
def test_a_name_that_would_change_the_meaning_of_a_pattern_gets_nothing_from_it(name: str) -> None:
    for client in (Client("c", name), Client(name, "ann")):
        assert not ACL.may_publish(client, f"client/{client.client_id}/state") or client.client_id == "c"
        assert not ACL.may_publish(client, f"user/{client.username}/x") or client.username == "ann"


def test_a_client_id_that_looks_like_a_mark_is_not_filled_in_again() -> None:
    acl = parse_acl("pattern x/%c/%u")
    assert acl.may_publish(Client("%u", "ann"), "x/%u/ann")
    assert not acl.may_publish(Client("%u", "ann"), "x/ann/ann")


def test_a_percent_sign_that_marks_nothing_stands_for_itself() -> None:
    assert parse_acl("pattern 100%/%x/%u").may_publish(ANN, "100%/%x/ann")


@pytest.mark.parametrize(
    ("client", "pattern", "may"),
    [
        (NOBODY, "news/#", True),
        (NOBODY, "#", True),
        (NOBODY, "news/secret", False),
        (NOBODY, "other/#", False),
        (ANN, "room/+/temperature", True),
        (ANN, "room/cellar/#", False),
        (ANN, "room/cellar/temperature", False),
        (ANN, "$share/g/log/#", True),
        (ANN, "$share/g/news/#", False),
        (ANN, "user/bob/#", False),
        (ANN, "user/+/x", True),
        (BOB, "room/1/light", False),
        (BOB, "$SYS/#", False),
    ],
)
def test_a_subscription_is_granted_when_something_of_it_could_be_received(
    client: Client, pattern: str, may: bool
) -> None:
    assert ACL.may_subscribe(client, pattern) is may


def test_without_a_line_nobody_may_do_anything() -> None:
    assert not Acl().may_publish(ANN, "a")
    assert not Acl().may_subscribe(NOBODY, "#")


def test_a_user_named_twice_has_the_lines_of_both() -> None:
    acl = parse_acl("user ann\ntopic a\nuser bob\ntopic b\nuser ann\ntopic c")
    assert [acl.may_publish(ANN, topic) for topic in "abc"] == [True, False, True]


def test_blanks_around_words_do_not_count() -> None:
    acl = parse_acl("  user   ann smith  \n topic   read    a b  ")
    assert set(acl.users) == {"ann smith"}
    assert [rule.topic for rule in acl.users["ann smith"]] == ["a b"]


@pytest.mark.parametrize(
    "line",
    [
        "topic",
        "user",
        "pattern ",
        "tpoic a",
        "topic reads a",
        "topic read a#",
        "topic a/#/b",
        "topic read write b+",
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: str) -> None:
    with pytest.raises(AclFileError, match=r"^line 2: "):
        parse_acl("# one\n" + line)


def test_a_rule_says_its_access() -> None:
    assert parse_acl("topic deny a").anonymous == (Rule(access=ACL.anonymous[1].access, topic="a"),)
