"""What can go wrong with an API server, as two exceptions with readable messages.

Raised by everything in this package. No message ever contains a credential.
"""

import re
from http import HTTPStatus

import msgspec


class KubeconfigError(Exception):
    """The configuration of the connection is wrong; says in which file and which field."""

    def __init__(self, file: object, field: str, message: str) -> None:
        super().__init__(": ".join(part for part in (str(file), field, message) if part))
        self.file = str(file)
        self.field = field
        self.message = message


# The API server's own words: a webhook's are behind its name.
_PERMISSION = re.compile(
    r'\S+(?: "[^"]*")? is forbidden: User "[^"]*" cannot (\w+) resource "([^"]+)" in API group'
)


class ApiError(Exception):
    """A response other than success; status 0 means that there was none.

    `reason` is Kubernetes' (NotFound, AlreadyExists, Conflict, Expired, ...); `retry_after` is the pause, in
    seconds, that the server asked for. `causes` are the finer reasons, such as DisruptionBudget, and `fields`
    what they concern.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        causes: tuple[str, ...] = (),
        fields: tuple[str, ...] = (),
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else f"{reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.causes = causes
        self.fields = fields
        # What this user has no permission for, such as "patch pods". Admission refuses with 403 as well.
        permission = _PERMISSION.match(message) if status == HTTPStatus.FORBIDDEN else None
        self.denied = " ".join(permission.groups()) if permission else ""
        # Set if new credentials are available by now, so that one more try may succeed.
        self.renewed = False


class UnreachableError(ApiError):
    """No response: refused, cut, too slow; `sent` is false if the server cannot have received the request."""

    def __init__(self, message: str, *, sent: bool, permanent: bool = False) -> None:
        super().__init__(0, "Unreachable", message)
        self.sent = sent
        self.permanent = permanent


class _Cause(msgspec.Struct):
    reason: str = ""
    field: str = ""


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: int = 0
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    """Kubernetes' own description of a failure."""

    kind: str = ""
    reason: str = ""
    message: str = ""
    code: int = 0
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(_Status)
_LONGEST_TEXT = 300


def api_error(status: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """The error in a response body, or in the object of an ERROR event (where `status` is 0)."""
    try:
        answer = _STATUS.decode(body)
    except msgspec.MsgspecError:
        answer = _Status()
    if answer.kind != "Status":
        # Not from the API server itself: a proxy or a load balancer in between.
        text = " ".join(body[:_LONGEST_TEXT].decode("utf-8", "replace").split())
        return ApiError(status, "Unknown", text or "no explanation", retry_after)
    details = answer.details or _Details()
    if retry_after is None and details.retry_after_seconds > 0:
        retry_after = float(details.retry_after_seconds)
    causes = details.causes or ()
    return ApiError(
        status or answer.code,
        answer.reason or "Unknown",
        answer.message or "no explanation",
        retry_after,
        tuple(cause.reason for cause in causes),
        tuple(cause.field for cause in causes),
    )
