"""An authority that makes certificates, and takes them back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct

PEM = serialization.Encoding.PEM


class Issued(Struct, frozen=True):
    """A certificate and its key, as files."""

    certificate: x509.Certificate
    cert: str
    key: str


def _named(*names: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names])


class Authority:
    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._number = 0
        certificate = self._signed(self._name, self._key.public_key(), is_authority=True)
        self.ca = str(folder / "ca.pem")
        Path(self.ca).write_bytes(certificate.public_bytes(PEM))

    def issue(self, *names: str, days: int = 1) -> Issued:
        self._number += 1
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(_named(*names), key.public_key(), is_authority=False, days=days)
        cert, secret = self._folder / f"{self._number}.pem", self._folder / f"{self._number}.key"
        cert.write_bytes(certificate.public_bytes(PEM))
        secret.write_bytes(
            key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        return Issued(certificate, str(cert), str(secret))

    def revoke(self, *issued: Issued) -> str:
        """The file of the revocation list."""
        now = datetime.now(UTC)
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self._name)
            .last_update(now - timedelta(days=1))
            .next_update(now + timedelta(days=1))
        )
        for one in issued:
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder()
                .serial_number(one.certificate.serial_number)
                .revocation_date(now - timedelta(hours=1))
                .build()
            )
        file = self._folder / f"crl{len(issued)}.pem"
        file.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(PEM))
        return str(file)

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, is_authority: bool, days: int = 1
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=2))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if not is_authority:
            names = x509.SubjectAlternativeName(
                [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
            )
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())
