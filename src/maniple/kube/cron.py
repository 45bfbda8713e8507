"""When a cron expression last fell due. Called by `usage_query` for windows that begin at such moments. Pure.

`cronsim` reads the expressions and finds the moment. The spellings that it lacks and that KAI's users may write,
`@daily` and its like and `?` for any day, are put into the common ones here.
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
    """The expression for `last_due`. Raises ValueError saying which field is wrong, also for days that never come."""
    written = text.strip().lower()
    expression = _SHORT.get(written, written).replace("?", "*")
    try:
        CronSim(expression, datetime.min.replace(tzinfo=UTC))
    except CronSimError as error:
        raise ValueError(f"{str(error).lower()} in cron expression {text[:60]!r}") from None
    return expression


def last_due(expression: str, moment: datetime) -> datetime:
    """The latest moment that the expression names and that is not after this one, in UTC."""
    start = moment.astimezone(UTC).replace(microsecond=0) + _SECOND
    return next(CronSim(expression, start, reverse=True))
