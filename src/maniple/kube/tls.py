"""TLS contexts: trusted authorities and client certificates, reread when their files change.

`configuration` makes a `Tls` per connection and `Client` takes a context from it before every request; the
context stays the same object while nothing changes, so that connections are reused. Certificates are always
verified unless the kubeconfig says otherwise.
"""

import logging
import os
import ssl
import tempfile
from pathlib import Path
from typing import Protocol

from maniple.kube.errors import KubeconfigError

log = logging.getLogger(__name__)


class Material(Protocol):
    """Bytes that may change between two reads: a token, a certificate, a key."""

    def read(self) -> bytes: ...


class Inline:
    """Bytes from the kubeconfig itself."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self) -> bytes:
        return self._content


class FreshFile:
    """A file that is rewritten from outside.

    It is read again whenever it changed; `file` and `field` say which setting names it.
    """

    def __init__(self, path: Path, file: object, field: str) -> None:
        self.path = path
        self._file = file
        self._field = field
        self._seen: tuple[int, int, int] | None = None
        self._content = b""

    def read(self) -> bytes:
        try:
            status = os.stat(self.path)
            seen = (status.st_mtime_ns, status.st_ino, status.st_size)
            if seen != self._seen:
                self._content = self.path.read_bytes()
                self._seen = seen
        except OSError as error:
            raise KubeconfigError(
                self._file, self._field, f"{self.path}: {error.strerror or 'cannot be read'}"
            ) from None
        return self._content

    def forget(self) -> None:
        """Read again next time, changed or not."""
        self._seen = None


ClientPair = tuple[bytes, bytes]
_Inputs = tuple[bytes | None, ClientPair | None]


class Tls:
    """The TLS side of a connection; a certificate from a credential plugin takes precedence."""

    def __init__(
        self,
        authority: Material | None,
        pair: tuple[Material, Material] | None,
        *,
        insecure: bool = False,
        file: object = "",
        field: str = "",
    ) -> None:
        self._authority = authority
        self._pair = pair
        self._insecure = insecure
        self._file = file
        self._field = field
        self._inputs: _Inputs | None = None
        self._context: ssl.SSLContext | None = None
        self._complaint = ""

    def context(self, pair: ClientPair | None = None) -> ssl.SSLContext:
        """The context for the files as they are now; halfway through a rotation the last good one stays in
        use."""
        try:
            inputs = self._read(pair)
            if self._context is None or inputs != self._inputs:
                self._context = _build(inputs, self._insecure)
                self._inputs = inputs
        except (KubeconfigError, ssl.SSLError, ValueError, OSError) as error:
            if self._context is not None:
                self._log_once(str(error))
                return self._context
            if isinstance(error, KubeconfigError):
                raise
            raise KubeconfigError(
                self._file, self._field, f"certificate or key cannot be used: {error}"
            ) from None
        return self._context

    def _log_once(self, message: str) -> None:
        """Log each message once, not once for each request."""
        if message != self._complaint:
            self._complaint = message
            log.warning("TLS settings changed but cannot be used, keeping the old ones: %s", message)

    def _read(self, pair: ClientPair | None) -> _Inputs:
        authority = self._authority.read() if self._authority is not None else None
        if pair is None and self._pair is not None:
            pair = (self._pair[0].read(), self._pair[1].read())
        return authority, pair


def _build(inputs: _Inputs, insecure: bool) -> ssl.SSLContext:
    authority, pair = inputs
    context = ssl.create_default_context(cadata=authority.decode("ascii") if authority is not None else None)
    # As in Go, everything in the bundle is trusted. Newer Pythons are stricter and reject the authorities of
    # many clusters.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if pair is not None:
        _load_pair(context, pair)
    return context


def _load_pair(context: ssl.SSLContext, pair: ClientPair) -> None:
    """The library takes certificates from files only: this one is readable by this user alone and deleted at
    once."""
    descriptor, name = tempfile.mkstemp(prefix="maniple-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pair[0] + b"\n" + pair[1])
        # Without a password the library would prompt for one on the terminal.
        context.load_cert_chain(name, password="")
    finally:
        os.unlink(name)
