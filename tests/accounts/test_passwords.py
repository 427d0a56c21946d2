"""Hashing beside the loop: bounded, never on it, and the same work for nobody as for somebody."""

from __future__ import annotations

import asyncio
import time

from holdfast.accounts.passwords import Passwords
from holdfast.errors import Unavailable
from tests.accounts.conftest import CHEAP, with_settings


async def test_a_password_is_right_or_wrong_and_nobodys_is_wrong() -> None:
    passwords = Passwords(CHEAP)
    stored = await passwords.hash("correct horse")
    assert stored.startswith("$argon2id$")
    assert stored != await passwords.hash("correct horse")
    assert (await passwords.verify(stored, "correct horse")).right
    for wrong in ("", "correct horsf", "correct horse\x00", "x" * 5_000):
        assert not (await passwords.verify(stored, wrong)).right
        assert not (await passwords.verify(None, wrong)).right
        assert not (await passwords.verify("damaged", wrong)).right
    passwords.close()


async def test_a_verification_for_nobody_is_as_dear_as_one_for_somebody() -> None:
    passwords = Passwords(with_settings(argon2_memory_kib=4096, argon2_passes=2))
    stored = await passwords.hash("correct horse")

    async def seconds(against: str | None) -> float:
        best = 9.0
        for _ in range(5):
            started = time.perf_counter()
            await passwords.verify(against, "wrong password")
            best = min(best, time.perf_counter() - started)
        return best

    somebody, nobody = await seconds(stored), await seconds(None)
    assert nobody > somebody / 3  # without the dummy hash it would be a thousandth
    passwords.close()


async def test_what_does_not_fit_the_queue_is_refused_at_once_and_the_rest_is_answered() -> None:
    passwords = Passwords(with_settings(hash_queue=4, hash_threads=1))
    said = await asyncio.gather(*[passwords.hash("x") for _ in range(20)], return_exceptions=True)
    assert sum(isinstance(each, str) for each in said) == 5
    refused = [each for each in said if isinstance(each, Unavailable)]
    assert len(refused) == 15
    assert refused[0].retry_after is not None
    await passwords.hash("there is room again")
    passwords.close()


async def test_a_caller_who_goes_away_frees_his_place() -> None:
    passwords = Passwords(with_settings(hash_queue=3, hash_threads=1))
    for _ in range(10):
        waiting = [asyncio.create_task(passwords.hash("x")) for _ in range(4)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await passwords.hash("y")
    passwords.close()


async def test_the_loop_goes_on_while_a_hash_is_made() -> None:
    passwords = Passwords(with_settings(argon2_memory_kib=65_536, argon2_passes=4))
    hashing = asyncio.create_task(passwords.hash("x"))
    turns = 0
    while not hashing.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 5
    passwords.close()


async def test_other_parameters_renew_a_hash_and_the_same_do_not() -> None:
    weak, strong = Passwords(CHEAP), Passwords(with_settings(argon2_passes=3))
    stored = await weak.hash("correct horse")
    assert (await weak.verify(stored, "correct horse")).renewed_hash is None
    renewed = (await strong.verify(stored, "correct horse")).renewed_hash
    assert renewed is not None
    assert (await strong.verify(renewed, "correct horse")).renewed_hash is None
    assert (await strong.verify(stored, "wrong password")).renewed_hash is None
    weak.close()
    strong.close()
