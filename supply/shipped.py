"""What is shipped: Maniple and every package that it needs in the image, as installed in this environment."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ITSELF = "maniple"
IMAGE_EXTRAS = ("admission",)  # of Maniple, which the Dockerfile installs
_CLASSIFIER = "License :: OSI Approved :: "
# The classifiers that stand for one licence. "BSD License", say, stands for several.
_CLASSIFIED = {
    "Apache Software License": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
# Packages whose metadata leave it open, read in the licence file that they come with.
_LOOKED_UP = {"cronsim": "BSD-3-Clause", "google-re2": "BSD-3-Clause"}


@dataclass(frozen=True, slots=True)
class Shipped:
    name: str
    version: str
    licence: str  # as the package states it, in SPDX's form where that is known; empty if it does not
    needs: tuple[str, ...]  # by name


def shipped(root: str = ITSELF) -> list[Shipped]:
    """The package and all that it needs, by name."""
    found: dict[str, Shipped] = {}
    waiting = [canonicalize_name(root)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            there = distribution(name)
            extras = ("", *IMAGE_EXTRAS) if name == ITSELF else ("",)
            needs = tuple(sorted(_needs(there.requires or (), extras)))
            found[name] = Shipped(name, there.version, _licence(there), needs)
            waiting += map(canonicalize_name, needs)
    return [found[name] for name in sorted(found)]


def _needs(requires: Iterable[str], extras: Iterable[str]) -> set[str]:
    """Without those of other extras, other platforms and other Pythons."""
    requirements = map(Requirement, requires)
    return {
        canonicalize_name(one.name)
        for one in requirements
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras)
    }


def _licence(there: Distribution) -> str:
    def all_of(field: str) -> list[str]:
        return there.metadata.get_all(field) or []

    classifiers = (one.removeprefix(_CLASSIFIER) for one in all_of("Classifier"))
    stated = [
        *all_of("License-Expression"),
        _LOOKED_UP.get(canonicalize_name(there.name), ""),
        *(_CLASSIFIED.get(one, "") for one in classifiers),
        *(text.partition("\n")[0].strip() for text in all_of("License")),
    ]
    return next(filter(None, stated), "")
