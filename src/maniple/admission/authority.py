"""The certificates of the webhook: an authority of its own, a server certificate, and when each is made anew.

Pure but for the randomness of keys: `renewed` says what the material should be at a moment. Both kinds are replaced
after two thirds of their life. A new authority is published first, beside the old one, and signs a server certificate
only after `OVERLAP`, when every API server has had time to learn of it. The old one leaves the bundle when the new
server certificate has been in use for as long. So at no time does a replica serve a certificate that an API server
does not trust.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE = timedelta(days=365)
SERVER_LIFE = timedelta(days=30)
OVERLAP = timedelta(minutes=10)
_SKEW = timedelta(minutes=5)  # by which clocks of other machines may be behind
_FIELDS = ("ca.crt", "ca.key", "tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class Lives:
    authority: timedelta = AUTHORITY_LIFE
    server: timedelta = SERVER_LIFE
    overlap: timedelta = OVERLAP


@dataclass(frozen=True, slots=True)
class Material:
    """As in the Secret, in PEM. `authorities` are trusted, the newest last; `authority_key` belongs to the newest.

    Keys are left out of what is printed of it.
    """

    authorities: tuple[bytes, ...]
    authority_key: bytes
    server: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"Material({len(self.authorities)} authorities)"

    @property
    def bundle(self) -> bytes:
        return b"".join(self.authorities)

    def data(self) -> dict[str, bytes]:
        return dict(
            zip(_FIELDS, (self.bundle, self.authority_key, self.server, self.server_key), strict=True)
        )


def material_of(data: Mapping[str, bytes]) -> Material | None:
    """What a Secret holds; None if anything is missing or cannot be read."""
    try:
        bundle, authority_key, server, server_key = (data[field] for field in _FIELDS)
        authorities = tuple(_pem(one) for one in x509.load_pem_x509_certificates(bundle))
        newest, leaf = (x509.load_pem_x509_certificate(one) for one in (authorities[-1], server))
        if not (_fits(newest, authority_key) and _fits(leaf, server_key)):
            return None
    except (KeyError, ValueError, TypeError):
        return None
    return Material(authorities, authority_key, server, server_key)


def expiries(material: Material) -> dict[str, datetime]:
    """When the server certificate and the newest authority end."""
    return {
        "server": _read(material.server).not_valid_after_utc,
        "authority": _read(material.authorities[-1]).not_valid_after_utc,
    }


def renewed(material: Material | None, names: Sequence[str], now: datetime, lives: Lives) -> Material:
    """The material for this moment; the same object if nothing has to change."""
    if material is None or _read(material.authorities[-1]).not_valid_after_utc <= now:
        return _fresh(names, now, lives)
    newest, server = _read(material.authorities[-1]), _read(material.server)
    if _is_old(newest, now):
        authority, key = _authority(now, lives.authority)
        return replace(material, authorities=(*material.authorities, authority), authority_key=key)
    of_newest = server.issuer == newest.subject
    published = len(material.authorities) == 1 or now >= _made(newest) + lives.overlap
    wrong = _names_of(server) != {*names} or server.not_valid_after_utc <= now
    if wrong or (published and (not of_newest or _is_old(server, now))):
        certificate, key = _issued(material.authorities[-1], material.authority_key, names, now, lives.server)
        return replace(material, server=certificate, server_key=key)
    if len(material.authorities) > 1 and of_newest and now >= _made(server) + lives.overlap:
        return replace(material, authorities=material.authorities[-1:])
    return material


def _fresh(names: Sequence[str], now: datetime, lives: Lives) -> Material:
    authority, authority_key = _authority(now, lives.authority)
    server, server_key = _issued(authority, authority_key, names, now, lives.server)
    return Material((authority,), authority_key, server, server_key)


def _is_old(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether two thirds of its life are over."""
    made, end = _made(certificate), certificate.not_valid_after_utc
    return now >= made + (end - made) * 2 / 3


def _made(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_before_utc + _SKEW


# -- making them ------------------------------------------------------------------------------------------------------


def _authority(now: datetime, life: timedelta) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    # With one name for both, the issuer of a certificate would not say which of two authorities signed it.
    serial = x509.random_serial_number()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"maniple-admission-ca-{serial:x}"[:60])])
    builder = (
        _builder(name, name, key.public_key(), now, life)
        .serial_number(serial)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return _pem(builder.sign(key, hashes.SHA256())), _key_pem(key)


def _issued(
    authority: bytes, authority_key: bytes, names: Sequence[str], now: datetime, life: timedelta
) -> tuple[bytes, bytes]:
    signer = serialization.load_pem_private_key(authority_key, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    issuer, key = _read(authority), ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "maniple-admission")])
    alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
    builder = (
        _builder(subject, issuer.subject, key.public_key(), now, life)
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(alternatives, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    return _pem(builder.sign(signer, hashes.SHA256())), _key_pem(key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    whole = now.replace(microsecond=0)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .not_valid_before(whole - _SKEW)
        .not_valid_after(whole + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


# -- reading them -----------------------------------------------------------------------------------------------------


def _read(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def _names_of(certificate: x509.Certificate) -> set[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {str(one.value) for one in found}


def _fits(certificate: x509.Certificate, key: bytes) -> bool:
    private = serialization.load_pem_private_key(key, None)
    return (
        isinstance(private, ec.EllipticCurvePrivateKey) and private.public_key() == certificate.public_key()
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
