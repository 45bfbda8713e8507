"""Answers as a Prometheus server gives them."""

from collections.abc import Mapping
from typing import Any


def vector(*series: tuple[Mapping[str, str], str]) -> dict[str, Any]:
    """The answer to a query: series with their labels and their value."""
    result = [{"metric": dict(labels), "value": [1.0, value]} for labels, value in series]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}
