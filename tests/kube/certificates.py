"""Keys and certificates for tests, made with the openssl command in a directory of the test."""

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

OPENSSL = shutil.which("openssl")


def openssl(*arguments: str) -> None:
    assert OPENSSL is not None
    subprocess.run([OPENSSL, *arguments], check=True, capture_output=True)


@dataclass(frozen=True)
class Pair:
    certificate: Path
    key: Path


class Authority:
    """An authority and the certificates that it gives out."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        if OPENSSL is None:
            pytest.skip("no openssl command to make certificates with")
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.own = self._request(name, "-x509", "-days", "2")

    def _request(self, name: str, *arguments: str) -> Pair:
        pair = Pair(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        subject = [
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-subj",
            f"/CN={name}",
        ]
        openssl("req", *subject, "-keyout", str(pair.key), "-out", str(pair.certificate), *arguments)
        return pair

    def issue(self, name: str, alternative: str = "IP:127.0.0.1") -> Pair:
        pair = self._request(name)
        request = pair.certificate.rename(self._directory / f"{name}.csr")
        extension = self._directory / f"{name}.ext"
        extension.write_text(f"subjectAltName={alternative}\n")
        signer = [
            "-CA",
            str(self.own.certificate),
            "-CAkey",
            str(self.own.key),
            "-CAcreateserial",
            "-days",
            "2",
        ]
        openssl(
            "x509",
            "-req",
            "-in",
            str(request),
            *signer,
            "-extfile",
            str(extension),
            "-out",
            str(pair.certificate),
        )
        return pair

    def server(self, alternative: str = "IP:127.0.0.1", *, ask_clients: bool = False) -> ssl.SSLContext:
        """The context of a server with a certificate of this authority."""
        pair = self.issue("server", alternative)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        if ask_clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.own.certificate)
        return context

    @cached_property
    def bundle(self) -> bytes:
        return self.own.certificate.read_bytes()
