"""Opening the file beside other processes."""

from __future__ import annotations

from pathlib import Path
from threading import Timer

import apsw

from holdfast.store.sqlite.connection import open_writer


def test_opening_a_new_file_waits_for_a_process_that_writes_to_it(tmp_path: Path) -> None:
    """A new file is not yet in write-ahead mode, and that change does not wait by itself."""
    path = tmp_path / "holdfast.db"
    neighbour = apsw.Connection(str(path))
    neighbour.execute("CREATE TABLE note (id INTEGER); BEGIN IMMEDIATE; INSERT INTO note VALUES (1)")
    lets_go = Timer(0.2, neighbour.execute, ["COMMIT"])
    lets_go.start()
    connection = open_writer(path, None)
    lets_go.join()
    assert connection.pragma("journal_mode") == "wal"
    connection.close()
    neighbour.close()
