"""The command `maniple snapshot`: everything that a plan depends on, from a running scheduler or from its journal."""

import os
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

import click
import msgspec

from maniple.cli import InputError, reader_may_leave
from maniple.cli.echo import echo
from maniple.cli.journal_input import opened
from maniple.objects.lists import has_settings
from maniple.objects.printable import printable_json

if TYPE_CHECKING:
    from http.client import HTTPResponse

DEFAULT_SOURCE = "http://127.0.0.1:8080"
PAGE = "/debug/snapshot"
LONGEST = 2**30  # bytes, as a file may have
SECONDS = 120.0
_ADVICE: Mapping[int, str] = {
    HTTPStatus.NOT_FOUND: "it does not serve this page; start the scheduler with --debug-endpoints",
    HTTPStatus.UNAUTHORIZED: "it needs a token; give --token-file",
    HTTPStatus.FORBIDDEN: f"the token's user may not get {PAGE}; allow it with a ClusterRole (nonResourceURLs)",
    HTTPStatus.SERVICE_UNAVAILABLE: "it is busy, or cannot check the token now; try again",
}
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("snapshot")
@click.argument("source", metavar="[SOURCE]", default=DEFAULT_SOURCE)
@click.option(
    "--anonymise", is_flag=True, help="Replace names of namespaces, objects, images and labels' values."
)
@click.option(
    "-f",
    "--file",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write it there, readable by its owner only.  [default: standard output]",
)
@click.option(
    "--token-file", metavar="FILE", type=_FILE, help="The bearer token for the scheduler's listener."
)
@click.option("--ca-file", metavar="FILE", type=_FILE, help="Certificates to trust instead of the system's.")
@click.option("--insecure-skip-tls-verify", is_flag=True, help="Do not check the certificate.")
def command(
    source: str,
    anonymise: bool,
    file: Path | None,
    token_file: Path | None,
    ca_file: Path | None,
    insecure_skip_tls_verify: bool,
) -> None:
    """Take a snapshot of a running scheduler.

    SOURCE is the address of a scheduler that was started with --debug-endpoints (see `maniple run --listen`), the
    folder of its journal, or a file that this command or `maniple rewind -o list` wrote; by default
    http://127.0.0.1:8080. The snapshot holds the cluster as the scheduler believes it to be, its configuration and
    options: `maniple plan` reads it and decides as the scheduler would.

    With --anonymise the snapshot can be given to others. Pseudonyms keep the order of names, so that the plan stays the
    same but for the names. Labels and annotations of Kubernetes, schedulers and device plugins stay as they are.

    \b
    Examples:
      maniple snapshot > cluster.json
      maniple snapshot https://scheduler:8443 --token-file token --ca-file ca.crt --anonymise -f for-a-report.json
      maniple snapshot journal/ --anonymise | maniple plan -

    Exit code: 0; 2 if usage or input is bad, or the scheduler does not answer.
    """
    if source.startswith(("http://", "https://")):
        document = _fetched(source, token_file, _context(ca_file, insecure_skip_tls_verify))
    elif Path(source).exists():
        document = _read(Path(source))
    else:
        raise InputError(
            f"{source}: neither an address with http:// or https:// nor an existing file or folder"
        )
    if anonymise:
        from maniple.journal.pseudonyms import pseudonymised

        document = pseudonymised(document)
    text = printable_json(msgspec.json.encode(document).decode())
    if file is None:
        with reader_may_leave():
            echo(text)
    else:
        _write(file, text)


def _read(path: Path) -> dict[str, Any]:
    """From a journal, or from a file that has a snapshot."""
    from maniple.journal.frames import SUFFIX

    if path.is_dir() or path.suffix == SUFFIX:
        with opened(path) as journal:
            return journal.last().moment().to_list()
    try:
        with path.open("rb") as stream:
            return _document(stream.read(LONGEST), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def _document(content: bytes, source: str) -> dict[str, Any]:
    from maniple.journal.moment import Moment

    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError(f"{source}: not JSON, so not a snapshot") from None
    if not has_settings(document):
        raise InputError(
            f"{source}: not a snapshot; expected what `maniple snapshot` or `maniple rewind -o list` writes"
        )
    try:
        Moment.of_list(document)
    except ValueError as error:
        raise InputError(f"{source}: not a snapshot that this version reads: {error}") from None
    found: dict[str, Any] = document
    return found


# -- from a scheduler ------------------------------------------------------------------------------------------------


class _NoRedirects(HTTPRedirectHandler):
    """A token goes to the given address and to no other."""

    def redirect_request(self, *given: Any) -> None:
        return None


def _context(ca_file: Path | None, insecure: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=str(ca_file) if ca_file is not None else None)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{ca_file}: no certificates: {error}") from None
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _fetched(source: str, token_file: Path | None, context: ssl.SSLContext) -> dict[str, Any]:
    request = Request(source.rstrip("/") + PAGE)  # the scheme was checked
    if token_file is not None:
        try:
            token = token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{token_file}: {error}") from None
        request.add_header("Authorization", f"Bearer {token}")
    opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context), _NoRedirects)
    try:
        with opener.open(request, timeout=SECONDS) as response:
            return _document(_bounded(response, source), source)
    except HTTPError as error:
        raise InputError(f"{source}: status {error.code}: {_ADVICE.get(error.code, error.reason)}") from None
    except (URLError, OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise InputError(f"{source}: no answer: {reason}") from None


def _bounded(response: "HTTPResponse", source: str) -> bytes:
    content = response.read(LONGEST + 1)
    if len(content) > LONGEST:
        raise InputError(f"{source}: the answer is longer than {LONGEST // 2**20:,} MiB")
    return content


def _write(file: Path, text: str) -> None:
    # A new name first: a reader never sees half a file, and a link of that name is not followed.
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        with open(
            os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as out:
            out.write(text + "\n")
        unfinished.replace(file)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None
