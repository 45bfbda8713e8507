"""Where to listen, and which clients may read what: the values, checked."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path

UNGUARDED = (
    "listening on {address}, which is not loopback, without {missing}; give --tls-cert-file and "
    "--tls-private-key-file, and --listen-token-file or --listen-authorization, or --listen-insecure if the "
    "network protects it"
)


@dataclass(frozen=True, slots=True)
class Listen:
    """One address. An empty host listens on all interfaces; port 0 takes a free one.

    Clients are authorized by a token of a file, by the API server (`delegate`), or not at all. `insecure`: neither
    TLS nor authorization is required although it is not loopback. `debug`: serve `/debug/`, `/get-snapshot` and
    `/get-job-order`, too. `optional`: a port that is taken is a warning, not the end.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    certificate: Path | None = None
    key: Path | None = None
    token_file: Path | None = None
    delegate: bool = False
    insecure: bool = False
    debug: bool = False
    metrics: bool = True
    metrics_prefix: str = "kai"  # of the metrics under KAI's names
    optional: bool = False

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("--tls-cert-file and --tls-private-key-file go together")
        if self.token_file is not None and self.delegate:
            raise ValueError("give --listen-token-file or --listen-authorization, not both")
        missing = [
            word for word, given in (("TLS", self.certificate), ("authorization", self.guarded)) if not given
        ]
        if missing and not self.loopback and not self.insecure:
            raise ValueError(UNGUARDED.format(address=self.address, missing=" and ".join(missing)))

    @property
    def guarded(self) -> bool:
        return self.token_file is not None or self.delegate

    @property
    def loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> tuple[str, int]:
    """`HOST:PORT`, `[IPV6]:PORT` or `:PORT`; raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} is not an address; expected HOST:PORT, such as 127.0.0.1:8080")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: an IPv6 address is written in brackets, such as [::1]:8080")
    return host, int(port)
