"""The bill of materials, the list of licences and the audit say what is so, and nothing that was not looked at."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from supply import audit, licences, sbom
from supply.lock import locked
from supply.shipped import Shipped, shipped
from tests.supply.test_lock import PROJECT

WHEN = datetime(2026, 11, 1, tzinfo=UTC)


def test_what_is_shipped_is_what_the_project_needs_and_no_tool() -> None:
    names = {one.name for one in shipped()}
    assert {"maniple", "aiohttp", "numpy", "multidict", "prometheus-client", "cryptography"} <= names
    assert not names & {"pytest", "mypy", "cython", "setuptools", "pip-audit", "uv"}
    assert len(PROJECT["project"]["dependencies"]) < len(names)


def test_the_bill_names_every_package_with_version_licence_and_hashes() -> None:
    written = json.loads(sbom.text(sbom.bill(shipped(), WHEN)))
    assert written["bomFormat"] == "CycloneDX"
    own = written["metadata"]["component"]
    components = {one["name"]: one for one in [own, *written["components"]]}
    versions = {one.name: one for one in shipped()}
    assert components.keys() == versions.keys()
    hashes = {one.name: {text.removeprefix("sha256:") for text in one.hashes} for one in locked()}
    for name, component in components.items():
        assert component["version"] == versions[name].version
        assert component["licenses"]
        files = [one for place in component.get("externalReferences", ()) for one in place["hashes"]]
        assert {one["content"] for one in files} == hashes.get(name, set())
        assert bool(files) == (name != "maniple")
    needs = {one["ref"]: one.get("dependsOn", []) for one in written["dependencies"]}
    assert any("pkg:pypi/numpy@" in one for one in needs[own["bom-ref"]])


def test_the_same_environment_gives_the_same_bill() -> None:
    first, second = (sbom.text(sbom.bill(shipped(), WHEN)) for _ in range(2))
    assert first == second


def test_every_licence_is_known_and_allowed() -> None:
    assert [*filter(None, map(licences.problem, shipped()))] == []
    assert "aiohttp" in licences.table(shipped())


@pytest.mark.parametrize(
    ("licence", "words"),
    [
        ("GPL-3.0-only", "GPL-3.0-only is not on the list"),
        ("MIT OR AGPL-3.0-or-later", "AGPL-3.0-or-later is not on the list"),
        ("MPL-2.0", "MPL-2.0 is not on the list"),
        ("do what you like", "unknown licence 'do what you like'"),
        ("BSD", "unknown licence 'BSD'"),
        ("", "states no licence"),
    ],
)
def test_an_unknown_licence_or_one_that_is_not_allowed_is_refused(licence: str, words: str) -> None:
    found = licences.problem(Shipped("some", "1.0", licence, ()))
    assert found.startswith("some 1.0: ")
    assert words in found


def of(*packages: dict[str, Any]) -> dict[str, Any]:
    return {"dependencies": [*packages], "fixes": []}


FINE = {"name": "click", "version": "8.1", "vulns": []}
FLAWED = {"name": "aiohttp", "version": "3.9", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.10"]}]}
SKIPPED = {"name": "rich", "skip_reason": "not found"}


def test_the_audit_passes_only_if_every_package_was_looked_up() -> None:
    assert audit.judged(of(FINE)).status == 0
    assert audit.judged(of(FINE, FLAWED)) == audit.Outcome(
        audit.FOUND,
        "aiohttp 3.9: PYSEC-1, fixed in 3.10\n`make lock UPGRADE=--upgrade` takes new releases.",
    )
    for report, words in (
        (of(FINE, SKIPPED), "1 of 2 packages could not be looked up (rich)"),
        (of(), "the packages could not be looked up"),
        (None, "the packages could not be looked up: no route"),
    ):
        outcome = audit.judged(report, "no route" if report is None else "")
        assert outcome.status == audit.NOT_LOOKED_UP
        assert f"NOT AUDITED: {words}" in outcome.message
