"""Errors of the embedded API, with the status codes and reasons of a real API server."""


class ApiError(Exception):
    """A request that was not carried out, or whose response was lost (status 0).

    `field`: what is wrong in an invalid object.
    """

    def __init__(
        self, status: int, reason: str, message: str, retry_after: float | None = None, field: str = ""
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else f"{reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.field = field


def not_found(kind: str, key: str) -> ApiError:
    return ApiError(404, "NotFound", f"{kind} {key} does not exist")


def already_exists(kind: str, key: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f"{kind} {key} exists already")


def conflict(kind: str, key: str, message: str) -> ApiError:
    return ApiError(409, "Conflict", f"{kind} {key}: {message}")


def invalid(message: str, field: str = "") -> ApiError:
    return ApiError(422, "Invalid", message, field=field)


def gone(since: int) -> ApiError:
    return ApiError(410, "Expired", f"changes since version {since} are no longer kept")
