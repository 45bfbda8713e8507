"""The generated files are those that the generator makes now: `make manifests` after a change."""

from pathlib import Path

import yaml

from tests.install.chart import CHART, PROFILES, ROOT
from tests.install.manifests import chart_files, plain_manifests, roles


def test_the_roles_have_all_owners_of_pods() -> None:
    for path, text in roles().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make manifests`"


def test_the_chart_has_the_roles_and_definitions_of_their_sources() -> None:
    files = chart_files()
    for path, text in files.items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run `make manifests`"
    for folder in ("rbac", "crds"):
        made = {path for path in files if CHART / "files" / folder in path.parents}
        assert made == {path for path in (CHART / "files" / folder).rglob("*") if path.is_file()}


def test_the_plain_manifests_are_what_the_chart_renders(helm: Path) -> None:
    for path, text in plain_manifests(helm).items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run `make manifests`"


def test_a_kustomization_names_every_file_of_its_folder() -> None:
    for folder in ("crds", "admission", *PROFILES):
        place = ROOT / "deploy" / folder
        named = yaml.safe_load((place / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
        assert set(named) == {file.name for file in place.iterdir()} - {"kustomization.yaml"}
