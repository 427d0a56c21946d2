"""What the storm knows of MQTT: what had to come, what may come, what may not come again."""

from __future__ import annotations

import pytest

from tests.faults.mqtt_truth import Cover, Listener, Sent, Truth
from tests.faults.operations import Lost

TOPIC = "storm/0/1"
QOS = 2


@pytest.fixture
def truth() -> Truth:
    return Truth([TOPIC])


@pytest.fixture
def listener(truth: Truth) -> Listener:
    return Listener("subscriber", truth)


def covered(truth: Truth, listener: Listener) -> Cover:
    cover = Cover(truth.now())
    listener.covers[TOPIC].append(cover)
    return cover


def taken(truth: Truth) -> Sent:
    message = truth.send("publisher", TOPIC, QOS)
    message.taken = truth.now()
    return message


def settle(truth: Truth, listener: Listener) -> None:
    assert not listener.missing()
    listener.settle()
    truth.settle()


def test_what_was_sent_while_a_subscription_came_or_went_may_come_after_everything_that_had_to(
    truth: Truth, listener: Listener
) -> None:
    cover = covered(truth, listener)
    early = taken(truth)
    cover.granted = truth.now()
    cover.given_up = truth.now()
    late = taken(truth)
    cover.gone = truth.now()
    settle(truth, listener)
    for message in (early, late):
        listener.arrived(TOPIC, message.payload, QOS)
        with pytest.raises(Lost, match="twice"):
            listener.arrived(TOPIC, message.payload, QOS)


def test_what_has_come_may_not_come_again_after_everything_is_settled(
    truth: Truth, listener: Listener
) -> None:
    covered(truth, listener).granted = truth.now()
    message = taken(truth)
    listener.arrived(TOPIC, message.payload, QOS)
    settle(truth, listener)
    with pytest.raises(Lost, match="twice"):
        listener.arrived(TOPIC, message.payload, QOS)


def test_what_was_not_asked_for_may_not_come_after_everything_is_settled_either(
    truth: Truth, listener: Listener
) -> None:
    covered(truth, listener).gone = truth.now()
    message = taken(truth)
    settle(truth, listener)
    with pytest.raises(Lost):
        listener.arrived(TOPIC, message.payload, QOS)
