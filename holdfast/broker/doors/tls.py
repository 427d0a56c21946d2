"""TLS between two layers: ciphertext below, plain bytes above, no buffer of its own.

Everything that is encrypted goes down at once, so `unsent` below is all there is: the marks of a slow reader are as
true here as without TLS.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path

from holdfast.broker.doors.layers import Above, Consumer
from holdfast.broker.transport import Transport
from holdfast.errors import CannotStart
from holdfast.log import get_logger
from holdfast.settings import Tls

READ = 65_536

log = get_logger("broker")


def server_context(settings: Tls, *protocols: str) -> ssl.SSLContext:
    """What the settings say, or `CannotStart`. `protocols` are the names that ALPN may choose from."""
    if not settings.cert:
        raise CannotStart(
            "a TLS door needs tls.cert, the server's certificate (and tls.key, its private key)"
        )
    if not settings.ca and (settings.require_client_cert or settings.cn_as_username or settings.crl):
        raise CannotStart("client certificates need tls.ca, the certificates of those who vouch for them")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(protocols)
    for name in ("cert", "key", "ca", "crl"):
        _readable(name, getattr(settings, name))
    try:
        context.load_cert_chain(settings.cert, settings.key or None, password=_no_password)
    except (ssl.SSLError, _Encrypted) as error:
        raise CannotStart(f"tls.cert, tls.key: {_said(error)}") from None
    if settings.ca:
        context.verify_mode = ssl.CERT_REQUIRED if settings.require_client_cert else ssl.CERT_OPTIONAL
        _trust(context, "ca", settings.ca)
    if settings.crl:
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
        _trust(context, "crl", settings.crl)
    return context


def _readable(name: str, file: str) -> None:
    if not file:
        return
    try:
        with Path(file).open("rb"):
            pass
    except OSError as error:
        raise CannotStart(f"tls.{name}: cannot read {file}: {error.strerror}") from None


class _Encrypted(Exception):
    """The key file is encrypted; a server has nobody to ask for its password."""


def _no_password() -> str:
    raise _Encrypted("the private key is encrypted: store it without a password")


def _said(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if reason == "KEY_VALUES_MISMATCH":
        return "the private key is not that of the certificate"
    return str(reason or error).lower().replace("_", " ")


def _trust(context: ssl.SSLContext, name: str, file: str) -> None:
    try:
        context.load_verify_locations(file)
    except ssl.SSLError as error:
        raise CannotStart(f"tls.{name}: {file} is no PEM file: {_said(error)}") from None


class TlsLayer:
    """| state | left by |
    |---|---|
    | handshake | its end; an alert; `timeout` |
    | open | `close`, `abort`, a broken record, the other side's close_notify |
    | closed | |
    """

    def __init__(self, below: Transport, context: ssl.SSLContext, above: Above, timeout: float) -> None:
        self._below = below
        self._make_above = above
        self._above: Consumer | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._late = asyncio.get_running_loop().call_later(timeout, self._give_up, "timeout")
        self._closed = False
        self.address = below.address
        self.certificate_name: str | None = None

    # -- from below

    def receive_data(self, data: bytes) -> None:
        if self._closed:
            return
        self._incoming.write(data)
        try:
            if self._above is None:
                self._shake_hands()
            self._deliver()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.close()
        except ssl.SSLError as error:
            self._give_up(_said(error))
        self._send()

    def pause_writing(self) -> None:
        if self._above is not None:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        if self._above is not None:
            self._above.resume_writing()

    def connection_lost(self) -> None:
        self._closed = True
        self._late.cancel()
        if self._above is not None:
            self._above.connection_lost()

    # -- from above

    def write(self, data: bytes) -> None:
        if self._closed:
            return
        try:
            sent = self._tls.write(data)
            while sent < len(data):
                sent += self._tls.write(memoryview(data)[sent:])
        except ssl.SSLError as error:
            self._give_up(_said(error))
            return
        self._send()

    def unsent(self) -> int:
        return self._below.unsent()

    def pause_reading(self) -> None:
        self._below.pause_reading()

    def resume_reading(self) -> None:
        self._below.resume_reading()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with suppress(ssl.SSLError):
            self._tls.unwrap()  # writes our close_notify, and complains that the other side's is not there
        self._send()
        self._below.close()

    def abort(self) -> None:
        self._closed = True
        self._below.abort()

    # --

    def _shake_hands(self) -> None:
        self._tls.do_handshake()
        self._late.cancel()
        self.certificate_name = common_name(self._tls.getpeercert())
        self._send()
        self._above = self._make_above(self)

    def _deliver(self) -> None:
        assert self._above is not None
        while not self._closed:
            data = self._tls.read(READ)
            if not data:
                self.close()
            else:
                self._above.receive_data(data)

    def _send(self) -> None:
        if self._outgoing.pending:
            self._below.write(self._outgoing.read())

    def _give_up(self, why: str) -> None:
        """A broken or late handshake, or a broken record. An alert that says so has been written."""
        if self._closed:
            return
        self._closed = True
        self._late.cancel()
        log.info("tls_failed", address=self.address, why=why)
        self._send()
        self._below.close()


def common_name(certificate: object) -> str | None:
    """The one common name of a verified certificate; None for none, several, or one with characters unseen."""
    subject = certificate.get("subject", ()) if isinstance(certificate, dict) else ()
    names = [value for group in subject for key, value in group if key == "commonName"]
    if len(names) != 1 or not names[0] or not names[0].isprintable():
        return None
    return str(names[0])
