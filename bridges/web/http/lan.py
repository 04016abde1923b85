"""Pages for the machines of a local network: this machine's names and addresses, and a certificate made for them."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.clock import to_s, wall_time_ns
from runtime.errors import UserError
from runtime.extras import install
from runtime.operating_system.machine import home
from runtime.operating_system.whole_file import PRIVATE, write_whole

if TYPE_CHECKING:
    from cryptography.x509 import GeneralName

LAN = "lan"
"""The address of a page that other machines of the network may open."""
VALID_DAYS = 90
RENEWED_DAYS = 7
"""A certificate that ends sooner is made again."""
ELSEWHERE = "192.0.2.1"
"""An address of nobody (RFC 5737): the way there shows our own address; nothing is sent."""


def own_names() -> tuple[str, ...]:
    """Addresses and names under which other machines may reach this one, the most likely first; then loopback."""
    found: list[str] = []
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.connect((ELSEWHERE, 9))
        found.append(way.getsockname()[0])
    host = socket.gethostname()
    with suppress(OSError):
        found += [str(entry[4][0]) for entry in socket.getaddrinfo(host, None, socket.AF_INET)]
    found += [host.lower(), f"{host.lower().removesuffix('.local')}.local", "127.0.0.1", "localhost"]
    return tuple(dict.fromkeys(found))


def certificate_for(names: Sequence[str], folder: Path | None = None) -> tuple[str, str]:
    """Certificate and key (PEM files of this user alone) for these names; made where there is none for all of them.

    Raises UserError where they cannot be made.
    """
    folder = folder or Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config") / "polyrhythm" / "pages"
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    try:
        if not (key.is_file() and certificate.is_file() and _is_good(certificate, names)):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _make(certificate, key, names)
    except ImportError as problem:
        raise UserError(
            "console: a certificate for the local network needs the package cryptography: "
            f"{install('bridges[console]')}; or give certificate and key"
        ) from problem
    except OSError as problem:
        raise UserError(
            f"console: the certificate for the local network cannot be kept in {folder} ({problem.strerror}); "
            "give certificate and key"
        ) from problem
    return str(certificate), str(key)


def _is_good(path: Path, names: Sequence[str]) -> bool:
    from cryptography.x509 import DNSName, IPAddress, SubjectAlternativeName, load_pem_x509_certificate

    try:
        known = load_pem_x509_certificate(path.read_bytes())
    except ValueError:
        return False
    own = known.extensions.get_extension_for_class(SubjectAlternativeName).value
    has = {*own.get_values_for_type(DNSName), *(str(one) for one in own.get_values_for_type(IPAddress))}
    return set(names) <= has and known.not_valid_after_utc - _now() > timedelta(days=RENEWED_DAYS)


def _now() -> datetime:
    return datetime.fromtimestamp(to_s(wall_time_ns()), UTC)


def _make(certificate: Path, key: Path, names: Sequence[str]) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    secret = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Polyrhythm on this network")])
    now = _now()
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(secret, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = secret.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for path, data in ((key, plain), (certificate, made.public_bytes(pem))):
        write_whole(path, data, mode=PRIVATE)


def _general(name: str) -> GeneralName:
    from cryptography.x509 import DNSName, IPAddress

    try:
        return IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return DNSName(name)
