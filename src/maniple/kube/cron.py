"""When a cron expression was last due; pure.

Called by `usage_query` for windows that begin at such moments. `cronsim` parses the expressions and finds the
moment. Notations that it lacks but KAI accepts, `@daily` and its like and `?` for any day, are translated
here.
"""

from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_SECOND = timedelta(seconds=1)


def read_cron(text: str) -> str:
    """The expression for `last_due`.

    Raises ValueError saying which field is wrong, also for days that never come.
    """
    written = text.strip().lower()
    expression = _SHORT.get(written, written).replace("?", "*")
    try:
        CronSim(expression, datetime.min.replace(tzinfo=UTC))
    except CronSimError as error:
        raise ValueError(f"{str(error).lower()} in cron expression {text[:60]!r}") from None
    return expression


def last_due(expression: str, moment: datetime) -> datetime:
    """The latest moment of the expression that is not after this one, in UTC."""
    start = moment.astimezone(UTC).replace(microsecond=0) + _SECOND
    return next(CronSim(expression, start, reverse=True))
