"""Pages of a running scheduler, for commands that ask it: its address, a token, and which certificates to trust."""

import functools
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

import click

from maniple.cli import InputError
from maniple.objects.printable import printable

DEFAULT_ADDRESS = "http://127.0.0.1:8080"
SNAPSHOT, EXPLAIN = "/debug/snapshot", "/debug/explain"
LONGEST = 2**30  # bytes, as a file may have
SECONDS = 120.0
_SCHEMES = ("http://", "https://")
_ADVICE: Mapping[int, str] = {
    HTTPStatus.NOT_FOUND: "it does not serve this page; start the scheduler with --debug-endpoints",
    HTTPStatus.UNAUTHORIZED: "it needs a token; give --token-file",
    HTTPStatus.FORBIDDEN: "the token's user may not get {page}; allow it with a ClusterRole (nonResourceURLs)",
    HTTPStatus.SERVICE_UNAVAILABLE: "it is busy, or cannot check the token now; try again",
}
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_ACCESS = (
    click.option(
        "--token-file", metavar="FILE", type=_FILE, help="The bearer token for the scheduler's listener."
    ),
    click.option(
        "--ca-file", metavar="FILE", type=_FILE, help="Certificates to trust instead of the system's."
    ),
    click.option("--insecure-skip-tls-verify", is_flag=True, help="Do not check the certificate."),
)


@dataclass(frozen=True, slots=True)
class Access:
    """How a scheduler's listener is reached."""

    token_file: Path | None = None
    ca_file: Path | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class RunningScheduler:
    address: str
    access: Access = Access()

    def page(self, path: str, query: str = "") -> bytes:
        """The content of a page; raises InputError with what to do about it."""
        request = Request(self.address.rstrip("/") + path + query)  # the scheme was checked
        request.add_header("Accept", "application/json")
        if self.access.token_file is not None:
            request.add_header("Authorization", f"Bearer {_token(self.access.token_file)}")
        opener = build_opener(ProxyHandler({}), HTTPSHandler(context=_context(self.access)), _NoRedirects)
        try:
            with opener.open(request, timeout=SECONDS) as response:
                return _bounded(response, self.address)
        except HTTPError as error:
            raise self._refused(error, path, query) from None
        except (URLError, OSError, HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise InputError(f"{self.address}: no answer: {reason}") from None

    def _refused(self, error: HTTPError, path: str, query: str) -> InputError:
        text = error.read(2000).decode(errors="replace").strip()
        if query and error.code == HTTPStatus.NOT_FOUND and text.startswith(("no job", "pod ")):
            return InputError(printable(text))
        advice = _ADVICE.get(error.code, error.reason).format(page=path)
        return InputError(f"{self.address}: status {error.code}: {advice}")


def is_address(source: str) -> bool:
    return source.startswith(_SCHEMES)


def access_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options by which a listener is reached, as one `Access`."""

    @functools.wraps(function)
    def given(
        *first: Any,
        token_file: Path | None,
        ca_file: Path | None,
        insecure_skip_tls_verify: bool,
        **more: Any,
    ) -> None:
        function(*first, access=Access(token_file, ca_file, insecure_skip_tls_verify), **more)

    decorated: Callable[..., None] = given
    for decorate in reversed(_ACCESS):
        decorated = decorate(decorated)
    return decorated


def scheduler_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds --scheduler and the options of its listener, as one `RunningScheduler` or None."""

    @functools.wraps(function)
    def given(*first: Any, address: str | None, access: Access, **more: Any) -> None:
        if address is None and access != Access():
            raise click.UsageError("--token-file, --ca-file and --insecure-skip-tls-verify need --scheduler")
        function(*first, scheduler=None if address is None else RunningScheduler(address, access), **more)

    return click.option(
        "--scheduler",
        "address",
        metavar="URL",
        callback=_checked,
        help=f"Ask the running scheduler at this address, such as {DEFAULT_ADDRESS}; needs its --debug-endpoints.",
    )(access_options(given))


def _checked(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not is_address(value):
        raise click.BadParameter(f"{value!r} is not an address with http:// or https://")
    return value


class _NoRedirects(HTTPRedirectHandler):
    """A token goes to the given address and to no other."""

    def redirect_request(self, *given: Any) -> None:
        return None


def _context(access: Access) -> ssl.SSLContext:
    ca_file = access.ca_file
    try:
        context = ssl.create_default_context(cafile=str(ca_file) if ca_file is not None else None)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{ca_file}: no certificates: {error}") from None
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _token(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error}") from None


def _bounded(response: HTTPResponse, source: str) -> bytes:
    content = response.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise InputError(f"{source}: the answer is longer than {LONGEST // 2**20:,} MiB")
    return content


__all__ = [
    "DEFAULT_ADDRESS",
    "EXPLAIN",
    "LONGEST",
    "SNAPSHOT",
    "Access",
    "RunningScheduler",
    "access_options",
    "is_address",
    "scheduler_options",
]
