"""Certificates: what is made when, and that no step leaves API servers without trust in what is served."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from cryptography import x509

from maniple.admission.authority import Lives, Material, expiries, material_of, renewed

NAMES = ("hook.maniple-system.svc", "127.0.0.1")
LIVES = Lives()
START = datetime(2026, 1, 1, tzinfo=UTC)


def trusts(bundle: bytes, server: bytes) -> bool:
    leaf = x509.load_pem_x509_certificate(server)
    for authority in x509.load_pem_x509_certificates(bundle):
        try:
            leaf.verify_directly_issued_by(authority)
        except Exception:  # whichever it is, this authority did not sign it
            continue
        return True
    return False


def test_the_first_material_is_complete_and_usable(tmp_path: Path) -> None:
    made = renewed(None, NAMES, START, LIVES)
    assert material_of(made.data()) == made
    assert trusts(made.bundle, made.server)
    assert expiries(made) == {
        "server": START + LIVES.server,
        "authority": START + LIVES.authority,
    }
    (tmp_path / "crt").write_bytes(made.server)
    (tmp_path / "key").write_bytes(made.server_key)
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(tmp_path / "crt", tmp_path / "key")
    ssl.create_default_context(cadata=made.bundle.decode())
    assert "KEY" not in repr(made)


def test_nothing_changes_before_two_thirds_of_a_life() -> None:
    made = renewed(None, NAMES, START, LIVES)
    assert renewed(made, NAMES, START + LIVES.server * 0.66, LIVES) is made
    after = renewed(made, NAMES, START + LIVES.server * 0.67, LIVES)
    assert after.server != made.server
    assert after.authorities == made.authorities


def test_new_names_need_a_new_certificate_at_once() -> None:
    made = renewed(None, NAMES, START, LIVES)
    after = renewed(made, ("elsewhere.example.com",), START, LIVES)
    assert after.server != made.server
    assert trusts(made.bundle, after.server)


@pytest.mark.parametrize("field", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
@pytest.mark.parametrize("content", [None, b"", b"nonsense", b"other"])
def test_material_that_cannot_be_read_is_replaced(field: str, content: bytes | None) -> None:
    made = renewed(None, NAMES, START, LIVES)
    data = made.data()
    if content is None:
        del data[field]
    else:
        data[field] = renewed(None, NAMES, START, LIVES).data()[field] if content == b"other" else content
    if content == b"other" and field == "ca.crt":
        return  # the bundle of another authority does not fit its key either; covered by ca.key
    assert material_of(data) is None


def test_every_step_of_two_years_is_trusted_by_what_was_published_a_look_before() -> None:
    """Replicas look every minute, and API servers learn of a new bundle later than the replica that wrote it."""
    material: Material | None = None
    published: list[bytes] = []
    now, seen = START, 0
    while now < START + timedelta(days=730):
        before = material
        material = renewed(material, NAMES, now, LIVES)
        if material is not before:
            seen += 1
            if published:
                assert trusts(published[-1], material.server)  # served before this bundle is known
            assert before is None or trusts(material.bundle, before.server)  # another replica still serves it
            assert material_of(material.data()) == material
        published.append(material.bundle)
        assert len(material.authorities) <= 2
        assert all(end > now for end in expiries(material).values())
        # Quick where something goes on, otherwise by days.
        now += (
            timedelta(minutes=1)
            if len(material.authorities) > 1 or material is not before
            else timedelta(days=1)
        )
    assert seen > 30
