"""The recorded cases in which Maniple differs knowingly, each with the reason."""

ARGUED: dict[str, str] = {}
