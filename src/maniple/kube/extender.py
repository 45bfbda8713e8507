"""HTTP for the extender plugin: the transport passed to the core as the option `extenderTransport`.

The core itself does no I/O. One connection per service is kept open. Proxies are not used and redirects not
followed: an extender runs beside its scheduler.
"""

from http.client import HTTPConnection, HTTPException, HTTPSConnection, RemoteDisconnected
from urllib.parse import SplitResult, urlsplit

# One byte more than a response may have, so that the reader can tell that it is too long.
LONGEST = 10 * 2**20 + 1
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}


class HttpTransport:
    """Callable as `transport(url, body, timeout) -> (status, body)`; raises OSError if there is no response."""

    def __init__(self) -> None:
        self._connections: dict[tuple[str, str], HTTPConnection] = {}

    def __call__(self, url: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise OSError("not an address with http:// or https://")
        key = (address.scheme, address.netloc)
        kept = self._connections.pop(key, None)
        if kept is not None:
            try:
                return self._post(key, kept, address, body, timeout)
            except (RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                pass  # closed while it was idle; there was no response
        return self._post(key, _connect(address, timeout), address, body, timeout)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _post(
        self,
        key: tuple[str, str],
        connection: HTTPConnection,
        address: SplitResult,
        body: bytes,
        timeout: float,
    ) -> tuple[int, bytes]:
        path = f"{address.path or '/'}{'?' + address.query if address.query else ''}"
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        try:
            connection.request("POST", path, body, _HEADERS)
            response = connection.getresponse()
            answer = response.read(LONGEST)
        except HTTPException as error:
            connection.close()
            if isinstance(error, OSError):
                raise
            raise OSError(f"not HTTP: {error!r}") from None
        except OSError:
            connection.close()
            raise
        if response.isclosed():
            self._connections[key] = connection
        else:
            connection.close()
        return response.status, answer


def _connect(address: SplitResult, timeout: float) -> HTTPConnection:
    kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
    assert address.hostname is not None  # the caller has checked
    return kind(address.hostname, address.port, timeout=timeout)
