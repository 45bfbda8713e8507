"""One request to a monitoring server: Prometheus or Elasticsearch.

Called by the feeds of usage. What is sent, logins included, goes to the configured address and to no other: redirects
are refused, and a netrc file is not read. Certificates are verified unless the configuration says otherwise, a
response is bounded, and one in a compressed form, which could be anything when unpacked, is not JSON.
"""

from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec

LONGEST = 50 * 2**20  # bytes of a response


class MeasuringError(Exception):
    """The server could not be queried, or did not respond as it should."""


def connect(seconds: float | None = None) -> aiohttp.ClientSession:
    """A session for `post`. `seconds`: for one request, if the caller has no limit of its own."""
    return aiohttp.ClientSession(
        trust_env=False,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
        timeout=aiohttp.ClientTimeout(total=seconds),
    )


async def post(
    http: aiohttp.ClientSession, address: str, *, verify: bool = True, **request: Any
) -> tuple[int, Any]:
    """The status and the JSON of a response; raises MeasuringError."""
    place = without_login(address)
    try:
        async with http.post(
            address, ssl=verify, proxy=_proxy(address), allow_redirects=False, **request
        ) as response:
            if 300 <= response.status < 400:
                target = urlsplit(response.headers.get("Location", "")).netloc.rpartition("@")[2]
                elsewhere = f" to {target[:100]}" if target else ""
                raise MeasuringError(
                    f"{place}: redirects{elsewhere} are not followed; configure that address"
                )
            body, status = await _read(response, place), response.status
    except (aiohttp.ClientError, OSError) as error:
        raise MeasuringError(f"{place}: {str(error) or type(error).__name__}") from None
    try:
        return status, msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise MeasuringError(f"{place}: status {status}, no JSON") from None


async def _read(response: aiohttp.ClientResponse, place: str) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > LONGEST:
            raise MeasuringError(f"{place}: the response is longer than {LONGEST // 2**20} MiB")
    return bytes(body)


def _proxy(address: str) -> str | None:
    """The proxy of the environment, if there is one for this address."""
    url = urlsplit(address)
    return None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)


def without_login(address: str) -> str:
    """An address as it may be shown."""
    url = urlsplit(address)
    return url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()
