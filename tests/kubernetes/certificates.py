"""Who is who in the test cluster: an authority, certificates signed by it, and files that name them."""

from __future__ import annotations

import base64
import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID: Final = datetime.timedelta(days=7)
_SERVER_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs the certificates of one test cluster."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        signed = (
            self._unsigned(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "ca.pem"
        self.certificate.write_bytes(signed.public_bytes(Encoding.PEM))

    def issue(self, file: str, user: str, groups: Sequence[str] = ()) -> Pair:
        """A certificate for the user, and for servers on this machine."""
        key = ec.generate_private_key(ec.SECP256R1())
        organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        hosts = [x509.DNSName(name) for name in _SERVER_NAMES]
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        signed = (
            self._unsigned(subject, key.public_key())
            .add_extension(x509.SubjectAlternativeName([*hosts, address]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pair = Pair(self._folder / f"{file}.pem", self._folder / f"{file}-key.pem")
        pair.certificate.write_bytes(signed.public_bytes(Encoding.PEM))
        pair.key.write_bytes(_pem(key))
        return pair

    def _unsigned(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            # Clocks of neighbours differ.
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + _VALID)
        )


def token_keys(folder: Path) -> Pair:
    """The keys that sign the tokens of service accounts, and check them."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    pair = Pair(folder / "tokens.pub", folder / "tokens-key.pem")
    pair.certificate.write_bytes(public)
    pair.key.write_bytes(_pem(key))
    return pair


def kubeconfig(file: Path, address: str, authority: Path, who: Pair | str) -> Path:
    """A file for clients: `who` is a certificate, or a token."""
    user: dict[str, Any] = {"token": who}
    if isinstance(who, Pair):
        user = {"client-certificate-data": _encoded(who.certificate), "client-key-data": _encoded(who.key)}
    cluster = {"server": address, "certificate-authority-data": _encoded(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    file.write_text(yaml.safe_dump(content))
    return file


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
