"""Chat over HTTP: lists that page without a gap, and who may do what in a group."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.chat.conftest import House

Data = dict[str, Any]


async def asked(http: httpx.AsyncClient, path: str, **parameters: object) -> Data:
    answer = await http.get(path, params={key: str(value) for key, value in parameters.items()})
    assert answer.status_code == 200, answer.text
    data: Data = answer.json()["data"]
    return data


async def done(http: httpx.AsyncClient, path: str, **body: object) -> Data:
    answer = await http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    data: Data = answer.json()["data"]
    return data


# -- messages


async def test_messages_page_in_both_directions_without_gap_or_repetition(house: House) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann, house.http(bob) as http:
        for number in range(1, 8):
            await at_ann.say(bob, f"{number}")
        up: list[str] = []
        while True:
            page = await asked(
                http, "/single-chat/message/since", peerUserId=ann, limit=3, sinceSeq=up[-1] if up else 0
            )
            up += [m["msgSeq"] for m in page["items"]]
            if not page["hasMore"]:
                break
        assert up == ["1", "2", "3", "4", "5", "6", "7"]
        newest = await asked(http, "/single-chat/message/cursor", peerUserId=ann, limit=4)
        assert [m["body"] for m in newest["items"]] == ["7", "6", "5", "4"]
        assert newest["hasMore"] is True
        older = await asked(http, "/single-chat/message/cursor", peerUserId=ann, limit=4, lastSeq="4")
        assert [m["body"] for m in older["items"]] == ["3", "2", "1"]
        assert older["hasMore"] is False


async def test_rows_are_the_same_objects_as_frames(house: House) -> None:
    ann, bob = await house.users(2)
    group = await house.group(ann, bob)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob, house.http(bob) as http:
        await at_ann.say(bob, "hello", msgType="STICKER")
        await at_ann.say_to_group(group, "everyone", mentions=[str(bob)])
        frames = {f["type"]: f for f in await at_bob.hear_messages(2)}
        single = (await asked(http, "/single-chat/message/since", peerUserId=ann))["items"][0]
        assert single == frames["SINGLE_CHAT"]
        in_group = (await asked(http, "/group/message/since", groupId=group))["items"][0]
        assert {**in_group, "important": True} == frames["GROUP_CHAT"]
        async with house.http(ann) as of_ann:
            mine = (await asked(of_ann, "/single-chat/message/since", peerUserId=bob))["items"][0]
            assert (mine["from"], mine["to"]) == (str(ann), str(bob))


async def test_who_has_not_spoken_with_somebody_has_no_messages(house: House) -> None:
    ann, bob = await house.users(2)
    async with house.http(ann) as http:
        for path in ("/single-chat/message/since", "/single-chat/message/cursor"):
            assert await asked(http, path, peerUserId=bob) == {"items": [], "hasMore": False}
        state = await asked(http, "/single-chat/member/state", peerUserId=bob)
        assert state["headMsgSeq"] == state["peerLastReadMsgSeq"] == "0"


# -- conversations


async def test_conversations_come_latest_first_with_what_is_unread(house: House) -> None:
    ann, *others = await house.users(6)
    for number, other in enumerate(others):
        async with house.phone(other) as phone:
            for _ in range(number + 1):
                await phone.say(ann, f"from {number}")
    async with house.phone(ann) as at_ann, house.http(ann) as http:
        await at_ann.hear_messages(15)
        last = max(
            (m for m in at_ann.messages if m["from"] == str(others[2])), key=lambda m: int(m["msgSeq"])
        )
        await at_ann.ack(last, "read")
        await at_ann.say(others[2], "thanks")
        await at_ann.settled()
        await house.room.gateway.receipts.flush()
        found: list[Data] = []
        more: Mapping[str, object] = {}
        while True:
            page = await asked(http, "/single-chat/conversation/cursor", limit=2, **more)
            found += page["items"]
            if not page["hasMore"]:
                break
            more = {"lastUpdatedAt": page["nextLastUpdatedAt"], "lastId": page["nextLastId"]}
        assert len(found) == 5
        assert [c["updatedAt"] for c in found] == sorted((c["updatedAt"] for c in found), reverse=True)
        by_peer = {c["peerUserId"]: c for c in found}
        assert [by_peer[str(other)]["unreadCount"] for other in others] == [1, 2, 0, 4, 5]
        thanked = by_peer[str(others[2])]
        assert thanked["lastMessage"]["body"] == "thanks"
        assert (thanked["myLastReadMsgSeq"], thanked["headMsgSeq"]) == ("3", "4")
        assert thanked["peerLastReadMsgSeq"] == "0"


async def test_groups_in_the_list_say_who_asked_for_attention(house: House) -> None:
    ann, bob = await house.users(2)
    group = await house.group(ann, bob, name="Choir")
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob, house.http(bob) as http:
        mine = await at_bob.say_to_group(group, "me")
        await at_ann.say_to_group(group, "bob!", mentions=[str(bob)])
        await at_ann.say_to_group(group, "re", replyToServerMsgId=mine["serverMsgId"])
        await at_ann.say_to_group(group, "anything else")
        (found,) = (await asked(http, "/group/conversation/cursor"))["items"]
        assert (found["groupId"], found["name"], found["memberCount"]) == (str(group), "Choir", 2)
        assert (found["unreadCount"], found["mentionUnreadCount"]) == (3, 2)
        await at_bob.hear_messages(3)
        await at_bob.ack(at_bob.messages[0], "read")
        await at_bob.settled()
        await house.room.gateway.receipts.flush()
        (found,) = (await asked(http, "/group/conversation/cursor"))["items"]
        assert (found["unreadCount"], found["mentionUnreadCount"]) == (2, 1)


async def test_the_state_of_a_single_chat_shows_both_cursors(house: House) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob, house.http(ann) as http:
        await at_ann.say(bob, "one")
        await at_ann.say(bob, "two")
        messages = await at_bob.hear_messages(2)
        await at_bob.ack(messages[0], "read")
        await at_bob.settled()
        await house.room.gateway.receipts.flush()
        assert await asked(http, "/single-chat/member/state", peerUserId=bob) == {
            "peerUserId": str(bob),
            "headMsgSeq": "2",
            "myLastDeliveredMsgSeq": "2",
            "myLastReadMsgSeq": "0",
            "peerLastDeliveredMsgSeq": "2",
            "peerLastReadMsgSeq": "1",
        }


# -- groups


async def test_a_group_from_its_making_to_its_end(house: House) -> None:
    ann, bob, cid = await house.users(3)
    async with house.http(ann) as of_ann, house.http(bob) as of_bob, house.http(cid) as of_cid:
        made = await done(of_ann, "/group/create", name="  Choir ", memberUserIds=[str(bob), str(ann)])
        group = made["groupId"]
        assert (made["name"], made["memberCount"], made["myRole"]) == ("Choir", 2, "owner")
        seen = await asked(of_cid, "/group/profile/by-code", groupCode=made["groupCode"].lower())
        assert (seen["name"], seen["isMember"]) == ("Choir", False)
        assert "groupCode" not in seen
        joined = await done(of_cid, "/group/join", groupCode=made["groupCode"])
        assert (joined["memberCount"], joined["myRole"]) == (3, "member")
        assert (await done(of_cid, "/group/join", groupCode=made["groupCode"]))["memberCount"] == 3
        assert await asked(of_bob, "/group/basic", ids=f"{group},5") == [
            {"groupId": group, "name": "Choir", "memberCount": 3}
        ]
        await done(of_ann, "/group/member/set-admin", groupId=group, userId=str(bob))
        await done(of_bob, "/group/member/mute", groupId=group, userId=str(cid), durationSeconds=600)
        first = await asked(of_cid, "/group/member/list", groupId=group, limit=2)
        rest = await asked(
            of_cid, "/group/member/list", groupId=group, limit=2, lastUserId=first["nextLastUserId"]
        )
        roles = {m["userId"]: m["role"] for m in [*first["items"], *rest["items"]]}
        assert roles == {str(ann): "owner", str(bob): "admin", str(cid): "member"}
        assert rest["hasMore"] is False
        assert (await asked(of_cid, "/group/profile/by-id", groupId=group))["mutedUntil"] > 0
        await done(of_bob, "/group/member/mute", groupId=group, userId=str(cid), durationSeconds=0)
        assert "mutedUntil" not in await asked(of_cid, "/group/profile/by-id", groupId=group)
        fresh = (await done(of_bob, "/group/code/reset", groupId=group))["groupCode"]
        await done(of_bob, "/group/member/kick", groupId=group, userId=str(cid))
        old = await of_cid.post("/group/join", json={"groupCode": made["groupCode"]})
        assert (old.status_code, old.json()["reason"]) == (404, "group_not_found")
        await done(of_cid, "/group/join", groupCode=fresh)
        stays = await of_ann.post("/group/leave", json={"groupId": group})
        assert (stays.status_code, stays.json()["reason"]) == (403, "owner_stays")
        await done(of_ann, "/group/owner/transfer", groupId=group, userId=str(cid))
        await done(of_ann, "/group/leave", groupId=group)
        await done(of_ann, "/group/leave", groupId=group)
        await done(of_bob, "/group/leave", groupId=group)
        await done(of_cid, "/group/leave", groupId=group)
        assert await asked(of_cid, "/group/basic", ids=group) == []
    assert await house.problems() == []


ACTS: Mapping[str, Data] = {
    "/group/member/kick": {},
    "/group/member/set-admin": {"isAdmin": True},
    "/group/member/mute": {"durationSeconds": 600},
    "/group/owner/transfer": {},
}
ALLOWED = {
    "/group/member/kick": {("owner", "admin"), ("owner", "member"), ("admin", "member")},
    "/group/member/set-admin": {("owner", "admin"), ("owner", "member")},
    "/group/member/mute": {("owner", "admin"), ("owner", "member"), ("admin", "member")},
    "/group/owner/transfer": {("owner", "owner"), ("owner", "admin"), ("owner", "member")},
}


@pytest.mark.parametrize("path", ACTS)
async def test_what_each_role_may_do_to_each_other(house: House, path: str) -> None:
    """Everybody against everybody; whoever is outside finds no group."""
    people = dict(
        zip(("owner", "admin", "member", "stranger", "other admin"), await house.users(5), strict=True)
    )
    for actor in ("owner", "admin", "member", "stranger"):
        for concerned in ("owner", "admin", "member", "stranger"):
            group = await house.group(
                people["owner"], people["admin"], people["member"], people["other admin"]
            )
            async with house.http(people["owner"]) as http:
                for admin in ("admin", "other admin"):
                    await done(http, "/group/member/set-admin", groupId=str(group), userId=str(people[admin]))
            other = concerned
            if (actor, concerned) == ("admin", "admin"):
                other = "other admin"
            body = {"groupId": str(group), "userId": str(people[other]), **ACTS[path]}
            async with house.http(people[actor]) as http:
                answer = await http.post(path, json=body)
            if (actor, concerned) in ALLOWED[path]:
                expected = 200
            elif actor == "stranger" or (concerned == "stranger" and actor != "member"):
                expected = 404
            else:
                expected = 403
            assert answer.status_code == expected, (actor, concerned, answer.text)


@pytest.mark.parametrize(
    "path",
    [
        "/group/message/cursor",
        "/group/message/since",
        "/group/profile/by-id",
        "/group/member/list",
    ],
)
async def test_a_group_does_not_exist_for_whoever_is_not_in_it(house: House, path: str) -> None:
    ann, eve = await house.users(2)
    group = await house.group(ann)
    async with house.http(eve) as http:
        there = await http.get(path, params={"groupId": str(group)})
        nowhere = await http.get(path, params={"groupId": "12345"})
        assert (there.status_code, nowhere.status_code) == (404, 404)
        assert {**there.json(), "ts": 0} == {**nowhere.json(), "ts": 0}
        for post in ("/group/code/reset", "/group/leave"):
            answer = await http.post(post, json={"groupId": str(group)})
            assert answer.status_code == (404 if post.endswith("reset") else 200)


async def test_nobody_reads_without_a_token(sqlite_house: House) -> None:
    async with httpx.AsyncClient(base_url=f"http://{sqlite_house.web}") as http:
        document = sqlite_house.paths
        assert len(document) >= 19
        for method, path in document:
            answer = await http.request(method, path, json={} if method == "POST" else None)
            assert answer.status_code in (400, 401), path
            if method == "GET" and path.endswith("conversation/cursor"):
                assert answer.status_code == 401


@pytest.mark.parametrize(
    ("path", "parameters", "field"),
    [
        ("/single-chat/message/since", {"peerUserId": "ann"}, "peerUserId"),
        ("/single-chat/message/since", {"peerUserId": "0"}, "peerUserId"),
        ("/single-chat/message/since", {"peerUserId": str(2**63)}, "peerUserId"),
        ("/single-chat/message/since", {"peerUserId": "5", "sinceSeq": "-1"}, "sinceSeq"),
        ("/single-chat/message/since", {"peerUserId": "5", "limit": "0"}, "limit"),
        ("/single-chat/message/since", {"peerUserId": "5", "limit": "100000"}, "limit"),
        ("/single-chat/message/cursor", {"peerUserId": "5", "lastSeq": "١"}, "lastSeq"),
        ("/single-chat/message/cursor", {}, "peerUserId"),
        ("/single-chat/conversation/cursor", {"lastId": "5"}, "lastId"),
        ("/single-chat/conversation/cursor", {"lastUpdatedAt": "5"}, "lastId"),
        ("/group/conversation/cursor", {"lastUpdatedAt": "x", "lastId": "5"}, "lastUpdatedAt"),
        ("/group/message/since", {"groupId": "1.5"}, "groupId"),
        ("/user/basic", {"ids": ""}, "ids"),
        ("/user/basic", {"ids": ",".join(map(str, range(1, 200)))}, "ids"),
    ],
)
async def test_a_parameter_that_is_wrong_is_named(
    sqlite_house: House, path: str, parameters: Data, field: str
) -> None:
    ann = await sqlite_house.user()
    async with sqlite_house.http(ann) as http:
        answer = await http.get(path, params=parameters)
        assert answer.status_code == 400, answer.text
        assert answer.json()["data"] == {"field": field}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/group/create", {"name": ""}),
        ("/group/create", {"name": "   "}),
        ("/group/create", {"name": "a\u0000b"}),
        ("/group/create", {"name": "x" * 201}),
        ("/group/create", {"name": "x", "memberUserIds": ["one"]}),
        ("/group/create", {"name": "x", "memberUserIds": [5]}),
        ("/group/member/mute", {"groupId": "5", "userId": "6", "durationSeconds": 5}),
        ("/group/member/mute", {"groupId": "5", "userId": "6"}),
        ("/group/join", {"groupCode": 5}),
        ("/group/leave", {"groupId": "-5"}),
    ],
)
async def test_a_body_that_is_wrong_changes_nothing(sqlite_house: House, path: str, body: Data) -> None:
    ann = await sqlite_house.user()
    async with sqlite_house.http(ann) as http:
        assert (await http.post(path, json=body)).status_code == 400
        assert (await asked(http, "/group/conversation/cursor"))["items"] == []


async def test_a_group_made_twice_under_one_key_is_one_group(house: House) -> None:
    ann = await house.user()
    async with house.http(ann) as http:
        headers = {"Idempotency-Key": "once"}
        first, again = [
            (await http.post("/group/create", json={"name": "Choir"}, headers=headers)).json()["data"]
            for _ in range(2)
        ]
        assert first == again
        other = await http.post("/group/create", json={"name": "Band"}, headers=headers)
        assert other.status_code == 409


async def test_a_group_with_somebody_who_does_not_exist_is_not_made(house: House) -> None:
    ann = await house.user()
    async with house.http(ann) as http:
        answer = await http.post("/group/create", json={"name": "Choir", "memberUserIds": ["5"]})
        assert (answer.status_code, answer.json()["reason"]) == (404, "user_not_found")
        assert (await asked(http, "/group/conversation/cursor"))["items"] == []


async def test_codes_cannot_be_guessed_in_a_hurry(sqlite_house: House) -> None:
    ann = await sqlite_house.user()
    async with sqlite_house.http(ann) as http:
        codes = [
            (await http.post("/group/join", json={"groupCode": f"AAAA{number}"})).status_code
            for number in range(25)
        ]
        assert codes[:20] == [404] * 20
        assert codes[-1] == 429


async def test_names_of_users(sqlite_house: House) -> None:
    ann, bob = await sqlite_house.user("ann"), await sqlite_house.user("bob")
    async with sqlite_house.http(ann) as http:
        found = await asked(http, "/user/basic", ids=f"{bob}, {ann},5")
        assert {user["userId"]: user["username"] for user in found} == {str(ann): "ann", str(bob): "bob"}


async def test_the_document_of_the_api_names_each_address_and_shows_examples(sqlite_house: House) -> None:
    async with httpx.AsyncClient(base_url=f"http://{sqlite_house.web}") as http:
        document = (await http.get("/openapi/json")).json()
    for method, path in sqlite_house.paths:
        operation = document["paths"][path][method.lower()]
        assert operation["summary"]
        assert operation["security"] == [{"token": []}]
    schemas = document["components"]["schemas"]
    for name in ("Creating", "Joining", "InGroup", "OfMember", "Muting", "NewCode", "MessageFrame"):
        (found,) = [
            schema for full, schema in schemas.items() if full.rpartition("_")[2] == name or full == name
        ]
        shown = json.dumps(found)
        assert '"examples"' in shown or '"enum"' in shown, name
