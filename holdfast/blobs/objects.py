"""Files in an object store (S3 and its relatives, through obstore), behind the same contract as the disk.

A put is whole or not at all (a multipart upload becomes visible when it is completed) and a name is put once, so
an overwrite, a stale listing or a missing If-None-Match cannot hurt. An abandoned multipart upload stays
invisible in the bucket until its lifecycle rule removes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import from_url

from holdfast.blobs.model import Kept
from holdfast.errors import CannotStart, FileGone, FilesUnavailable
from holdfast.log import get_logger
from holdfast.settings import Blobs
from holdfast.settings.fields import MIB

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig, S3Config

PART_BYTES = 8 * MIB  # S3 allows 10,000 parts: files up to 78 GiB
PARTS_AT_ONCE = 2  # memory of one put: the parts under way
READ_BYTES = MIB

log = get_logger("blobs")


def connect(settings: Blobs) -> ObjectStore:
    """The store that `blobs.url` names; its credentials come from the settings, else from the environment."""
    config: S3Config = {}
    if settings.url.startswith(("s3://", "s3a://")):
        if settings.endpoint:
            config["endpoint"] = settings.endpoint
            config["virtual_hosted_style_request"] = False
        if settings.region:
            config["region"] = settings.region
        if settings.access_key:
            config["access_key_id"] = settings.access_key
            config["secret_access_key"] = settings.secret_key
    plain_http = settings.endpoint.startswith("http://")
    # a slow reader may take its time with one answer; a silent server may not
    client: ClientConfig = {
        "allow_http": plain_http,
        "connect_timeout": "5s",
        "read_timeout": "60s",
        "timeout": "6h",
    }
    retry: RetryConfig = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}
    try:
        if settings.url.startswith(("memory:", "file:")):
            return from_url(settings.url)
        return from_url(settings.url, config=config, client_options=client, retry_config=retry)
    except (BaseError, ValueError) as error:
        raise CannotStart(f"blobs.url: {str(error).strip()}") from error


@contextmanager
def in_our_words() -> Iterator[None]:
    """What an object store says, as our errors."""
    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        raise FileGone from error
    except (BaseError, OSError) as error:
        # its text may name the bucket, not the keys; users get our sentence
        log.warning("object_store_failed", error=str(error).partition("\n")[0])
        raise FilesUnavailable from error


class ObjectContent:
    """One object. A read is one request, resumed when it breaks; it outlives a deletion as long as it runs."""

    def __init__(self, store: ObjectStore, name: str, size: int) -> None:
        self._store = store
        self._name = name
        self.size = size

    @property
    def path(self) -> Path | None:
        return None

    def read(self, start: int, stop: int) -> Iterator[bytes]:
        broken = 0
        while start < stop:
            began = start
            try:
                for piece in self._request(start, stop):
                    start += len(piece)
                    yield piece
            except BaseError as error:
                broken = broken + 1 if start == began else 0
                with in_our_words():
                    if isinstance(error, NotFoundError) or broken > 2:
                        raise
                log.info("object_read_resumed", at=start, error=str(error).partition("\n")[0])

    def _request(self, start: int, stop: int) -> Iterator[bytes]:
        answer = obstore.get(self._store, self._name, options={"range": (start, stop)})
        yield from map(bytes, answer.stream(min_chunk_size=READ_BYTES))

    def close(self) -> None:
        """Nothing is held between two reads."""


class ObjectPlace:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def keep(self, source: Path, name: str) -> None:
        with in_our_words():
            obstore.put(self._store, name, source, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)

    def open(self, name: str) -> ObjectContent:
        with in_our_words():
            return ObjectContent(self._store, name, obstore.head(self._store, name)["size"])

    def remove(self, names: list[str]) -> None:
        for name in names:
            try:
                with in_our_words():
                    obstore.delete(self._store, name)
            except FileGone:
                continue  # some stores say so; S3 does not

    def listing(self) -> Iterator[Kept]:
        for kind in ("files", "pieces"):
            with in_our_words():
                for page in obstore.list(self._store, kind, chunk_size=1000):
                    for there in page:
                        modified_ms = round(there["last_modified"].timestamp() * 1000)
                        yield Kept(there["path"], there["size"], modified_ms)
