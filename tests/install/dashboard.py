"""The queries of the Grafana dashboard, as Prometheus gets them."""

import json
from typing import Any

from tests.install.chart import CHART

DASHBOARD = CHART / "files" / "dashboards" / "maniple.json"


def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return content


def queries() -> dict[tuple[str, str], str]:
    """Panel and letter of every query."""
    return {
        (panel["title"], target["refId"]): target["expr"]
        for panel in dashboard()["panels"]
        for target in panel.get("targets", ())
    }


def filled_in(expression: str, resource: str) -> str:
    """With what Grafana puts in for its variables: everything, over the last minute."""
    for variable, value in (
        ("$__rate_interval", "1m"),
        ("$job", ".*"),
        ("$queue", ".*"),
        ("$resource", resource),
    ):
        expression = expression.replace(variable, value)
    return expression
