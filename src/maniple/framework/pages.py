"""What a plugin shows to people over HTTP: the answer to a request, made by a session and served by whoever runs it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """`file_name` makes it something to save rather than to look at."""

    content_type: str
    body: bytes
    file_name: str = ""
