"""How an explanation names jobs, pods and queues. For the owner of one namespace, those of others are only counted.

Operators read everything. What is written to the objects of a namespace names nothing of another, unless the rule
`words.name_others` allows it; queues on a job's own way up are named in any case.
"""

from collections.abc import Sequence


class Names:
    """`namespace`: the only one whose objects are named; None: all are."""

    def __init__(self) -> None:
        self.namespace: str | None = None

    @property
    def all(self) -> bool:
        return self.namespace is None

    def shows(self, key: str) -> bool:
        """Whether an object of this key, namespace/name, is named."""
        return self.namespace is None or key.partition("/")[0] == self.namespace

    def listed(self, keys: Sequence[str], texts: Sequence[str], most: int) -> str:
        """Texts about jobs, as many as are to be listed and as may be; the rest are counted."""
        shown = [text for key, text in zip(keys, texts, strict=True) if self.shows(key)]
        counts = {
            "more job": max(len(shown) - most, 0),
            "job of other namespaces": len(keys) - len(shown),
        }
        rest = [_counted(count, words) for words, count in counts.items() if count]
        return " and ".join(filter(None, [", ".join(shown[:most]), *rest]))


def _counted(count: int, words: str) -> str:
    return f"{count} {words if count == 1 else words.replace('job', 'jobs')}"


__all__ = ["Names"]
