"""The chart as Helm renders it, for the tests and for the generator of the plain manifests."""

import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "charts" / "maniple"
PROFILES = ("maniple", "volcano", "kai")
ROLES = {"volcano": "rbac.yaml", "kai": "rbac-kai.yaml", "maniple": "rbac-maniple.yaml"}
OPTIONAL_ROLES = "rbac-optional.yaml"
RELEASE, NAMESPACE = "maniple", "maniple-system"
# What the plain manifests are rendered with, besides the profile. Definitions are in a folder of their own there:
# applied with the rest they would replace those of Volcano or KAI.
PLAIN: dict[str, Any] = {"namespace": {"create": True}, "crds": {"install": False}}
# The webhook, for the profile maniple, in a folder of its own: it is optional.
ADMISSION: dict[str, Any] = {**PLAIN, "admission": {"enabled": True}}

Raw = dict[str, Any]


class HelmError(RuntimeError):
    """Helm refused; the message is its own."""


def call(helm: Path, *words: str, values: Raw | None = None, home: Path | None = None) -> str:
    """Run Helm with values on its standard input, without files of the user's home."""
    given = ["--values", "-"] if values is not None else []
    folder = str(home or Path("/nonexistent"))
    done = subprocess.run(
        [str(helm), *words, *given],
        input=yaml.safe_dump(values) if values is not None else "",
        env={"HOME": folder, "HELM_CACHE_HOME": folder, "HELM_CONFIG_HOME": folder, "HELM_DATA_HOME": folder},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise HelmError(done.stderr.strip() + done.stdout.strip())
    return done.stdout


def render(
    helm: Path, values: Raw, release: str = RELEASE, namespace: str = NAMESPACE, only: str = ""
) -> str:
    """`only`: the objects of one template."""
    chosen = ["--show-only", f"templates/{only}"] if only else []
    return call(helm, "template", release, str(CHART), "--namespace", namespace, *chosen, values=values)


def objects(text: str) -> list[Raw]:
    return [item for item in yaml.safe_load_all(text) if item]


def rendered(helm: Path, values: Raw, release: str = RELEASE, namespace: str = NAMESPACE) -> list[Raw]:
    return objects(render(helm, values, release, namespace))


def one(items: list[Raw], kind: str) -> Raw:
    (found,) = [item for item in items if item["kind"] == kind]
    return found


def container(items: list[Raw]) -> Raw:
    (found,) = one(items, "Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(found)
