"""Every recorded cluster, replayed: what `maniple.plan` decides strictly is what the original decided.

Where the original decided differently from run to run, or not at all, it is enough that a plan comes out.
`ARGUED` names the cases in which Maniple differs knowingly, with the reason.
"""

import re

import pytest

from tests.corpus import replay, store, volcano_clusters
from tests.corpus.argued import ARGUED

CHUNK = 50
CHUNKS = [
    (name, first)
    for name in store.names()
    for first in range(0, sum(store.header(name)["counts"].values()), CHUNK)
]


@pytest.mark.parametrize(("name", "first"), CHUNKS)
def test_plans_are_what_the_original_decided(name: str, first: int) -> None:
    found = {}
    for case in store.recorded(name)[1][first : first + CHUNK]:
        differs = replay.differences(case)
        if differs and case["id"] not in ARGUED:
            found[f"{case['id']} ({case['topic']})"] = differs
    assert not found, "\n".join(f"{key}:\n  " + "\n  ".join(differs) for key, differs in found.items())


def test_what_is_argued_about_really_differs() -> None:
    cases = {case["id"]: case for name in store.names() for case in store.recorded(name)[1]}
    assert [key for key in ARGUED if key not in cases or not replay.differences(cases[key])] == []


@pytest.mark.parametrize("name", store.names())
def test_the_header_counts_what_is_there(name: str) -> None:
    header, cases = store.recorded(name)
    decided = [case for case in cases if store.kind_of(case["outcome"]) == "decided"]
    assert sum(header["counts"].values()) == len(cases)
    assert header["counts"]["decided"] == sum(header["topics"].values()) == len(decided)
    assert len({case["id"] for case in cases}) == len(cases)


def test_the_generator_still_makes_what_was_recorded() -> None:
    for seed, recorded in enumerate(store.recorded("volcano")[1]):
        kept = {key: value for key, value in recorded.items() if key != "outcome"}
        assert volcano_clusters.case(seed) == kept


def test_the_readme_counts_the_topics() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", (store.FOLDER / "README.md").read_text(), re.MULTILINE)
    assert {topic: int(count) for topic, count in rows} == store.header("volcano")["topics"]
