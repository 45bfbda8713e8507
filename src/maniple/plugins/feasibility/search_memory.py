"""What searches for devices have found, kept from cycle to cycle for speed.

Used by `dynamic_resources.py`. The outcome of a search depends on the claims' specs, the node and the state of the
pools that it reaches, so an unchanged claim that fits nowhere is not searched for again. No decision depends on
whether something is remembered (see `device_work.py`). Findings are forgotten with the catalogue of devices, and
together with what it knows of selectors when both have grown too large.
"""

from collections.abc import Hashable

from maniple.framework.session import Session
from maniple.plugins.feasibility.device_catalogue import DeviceCatalogue
from maniple.plugins.feasibility.device_search import Finding

MOST_REMEMBERED = 300_000  # findings, matches and the like: some hundred MB at most


class SearchMemory:
    """By claims, node and state of its pools."""

    def __init__(self, catalogue: DeviceCatalogue) -> None:
        self._catalogue = catalogue
        self._findings: dict[Hashable, Finding] = {}
        self._size = 0

    @classmethod
    def of(cls, session: Session, catalogue: DeviceCatalogue) -> "SearchMemory":
        """The one of an earlier session, if it is still valid."""
        memory = session.nodes.facts.memory
        known = memory.get(cls)
        if isinstance(known, cls) and known._catalogue is catalogue:
            if known._size + catalogue.size <= MOST_REMEMBERED:
                return known
            catalogue.forget()
        made = memory[cls] = cls(catalogue)
        return made

    def __len__(self) -> int:
        return len(self._findings)

    def get(self, key: Hashable) -> Finding | None:
        return self._findings.get(key)

    def keep(self, key: Hashable, finding: Finding) -> None:
        self._findings[key] = finding
        self._size += 1 + len(finding.used) + len(finding.choices or ())
