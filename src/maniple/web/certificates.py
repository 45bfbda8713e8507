"""The server's certificate, taken up again when its files change: rotation needs no restart."""

import asyncio
import logging
import os
import ssl
from pathlib import Path

log = logging.getLogger(__name__)

LOOK_SECONDS = 10.0


class Certificate:
    """A TLS context for new connections; a changed pair is loaded into it, a bad one changes nothing."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._seen = self._stamps()
        self.context.load_cert_chain(certificate, key)

    def _stamps(self) -> list[tuple[int, int]]:
        found = [os.stat(path) for path in self._files]
        return [(one.st_mtime_ns, one.st_ino) for one in found]

    def look(self) -> bool:
        """Load the pair if it changed; returns whether it did."""
        try:
            seen = self._stamps()
            if seen == self._seen:
                return False
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*self._files)
            self.context.load_cert_chain(*self._files)
        except (OSError, ssl.SSLError) as error:
            log.warning(
                "%s: changed but cannot be used, keeping the old certificate: %s", self._files[0], error
            )
            return False
        self._seen = seen
        log.info("%s: new certificate", self._files[0])
        return True

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()
