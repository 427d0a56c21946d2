"""Two servers on one PostgreSQL: one serves MQTT, the other everything else."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.serving import holdfast, logs_in, quick_server, registers
from tests.servers.stores import PostgresqlStores

FREE = ("--http", "127.0.0.1:0", "--ws", "127.0.0.1:0")


async def test_the_second_server_serves_everything_but_mqtt(
    tmp_path: Path, postgresql_stores: PostgresqlStores
) -> None:
    store = ("--set", f"store.url={postgresql_stores.url}")
    first = quick_server(tmp_path / "one", *store)
    doors = await first.start()
    refused = holdfast(
        "serve", "--data", tmp_path / "two", *store, *FREE, "--mqtt", "127.0.0.1:0", "--mqtt-ws", ""
    )
    assert refused.code == 2
    assert "another holdfast serves MQTT from this PostgreSQL" in refused.err
    second = quick_server(tmp_path / "two", *store, "--mqtt", "", "--mqtt-ws", "")
    others = await second.start()
    assert {"mqtt", "mqtt_ws"} <= set(doors)
    assert not {"mqtt", "mqtt_ws"} & set(others)
    assert (await registers(doors["http"], "ada")).status == 200
    assert await logs_in(others["http"], "ada") == 200
    for server in (second, first):
        server.terminate()
        await server.gone()
