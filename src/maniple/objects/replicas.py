"""The annotation `maniple.dev/replicas: "8"` on a pod: it stands for eight pods `<name>-0` to `<name>-7`.

For manifests of the embedded cluster, and for plans of them.
"""

import re
from collections.abc import Mapping
from typing import Any

REPLICAS = "maniple.dev/replicas"
_MOST = 100_000
_NUMBER = re.compile(r"[0-9]{1,9}")


def expanded(raw: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects that one stands for; an annotation that is no number from 1 to 100,000 is ignored."""
    metadata = raw.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    count = annotations.get(REPLICAS) if isinstance(annotations, Mapping) else None
    if count is None or raw.get("kind") != "Pod":
        return [raw]
    assert isinstance(metadata, Mapping)
    assert isinstance(annotations, Mapping)
    number = int(text) if _NUMBER.fullmatch(text := str(count)) else 0
    if not 0 < number <= _MOST:
        return [raw]
    left = {name: value for name, value in annotations.items() if name != REPLICAS}
    return [
        {**raw, "metadata": {**metadata, "name": f"{metadata.get('name')}-{index}", "annotations": left}}
        for index in range(number)
    ]
