"""The webhook in the chart: off by default, apart from the scheduler, with a command line that is accepted."""

from pathlib import Path
from typing import Any

import click
import pytest

from maniple.cli.main import main
from tests.install.chart import NAMESPACE, PROFILES, HelmError, Raw, rendered

ENABLED: Raw = {"admission": {"enabled": True}, "crds": {"install": False}}
FULL: Raw = {
    **ENABLED,
    "admission": {
        "enabled": True,
        "replicaCount": 3,
        "fail": "closed",
        "unknownQueue": "warn",
        "port": 8443,
        "extraArgs": ["--queue-access=closed"],
        "resources": {"limits": {"memory": "1Gi"}},
    },
    "schedulerNames": ["batch"],
    "defaultQueue": "lab",
    "fullnameOverride": "scheduler",
}


def webhook(items: list[Raw], name: str = "maniple-admission") -> dict[str, Raw]:
    """The objects that belong to the webhook, by kind."""
    found = [item for item in items if item["metadata"]["name"] in (name, _role(name))]
    return {item["kind"]: item for item in found}


def _role(name: str) -> str:
    return f"{name.removesuffix('-admission')}:{NAMESPACE}:admission"


def words_of(deployment: Raw) -> list[str]:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return list(container["args"])


def test_it_is_off_by_default(helm: Path) -> None:
    assert webhook(rendered(helm, {})) == {}


def test_it_has_everything_of_its_own(helm: Path) -> None:
    before, after = rendered(helm, {"crds": {"install": False}}), rendered(helm, ENABLED)
    added = [item for item in after if item not in before]
    assert webhook(after).keys() == {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Service",
        "Deployment",
        "PodDisruptionBudget",
        "NetworkPolicy",
    }
    assert len(added) == len(webhook(after))
    # Nothing of the scheduler selects pods of the webhook, nor the other way round.
    labels = [
        item["spec"]["template"]["metadata"]["labels"] for item in after if item["kind"] == "Deployment"
    ]
    for item in after:
        spec = item.get("spec", {})
        selector = spec.get("selector") or spec.get("podSelector") or {}
        wanted = selector.get("matchLabels", selector)
        if wanted:
            assert sum(wanted.items() <= one.items() for one in labels) == 1


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("values", [ENABLED, FULL], ids=["enabled", "full"])
def test_the_command_line_is_accepted(helm: Path, profile: str, values: Raw, tmp_path: Path) -> None:
    name = "scheduler-admission" if values is FULL else "maniple-admission"
    made = webhook(rendered(helm, {**values, "profile": profile}), name)
    words = words_of(made["Deployment"])
    (tmp_path / "scheduler.conf").touch()
    words = [word.replace("/etc/maniple/", f"{tmp_path}/") for word in words]
    command = main.get_command(click.Context(main), words[0])
    assert command is not None
    with command.make_context(
        words[0], words[1:], parent=click.Context(main, info_name="maniple")
    ) as context:
        given: dict[str, Any] = context.params
    assert given["service"] == made["Service"]["metadata"]["name"]
    assert given["owner_role"] == made["ClusterRole"]["metadata"]["name"]
    assert given["fail"] == values["admission"].get("fail", "open")
    (port,) = made["Service"]["spec"]["ports"]
    assert port["port"] == 443
    secret = f"{given['service']}-tls"
    assert made["Role"]["rules"][1] == {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [secret],
        "verbs": ["get", "update"],
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_the_role_names_the_kinds_of_the_profile(helm: Path, profile: str) -> None:
    role = webhook(rendered(helm, {**ENABLED, "profile": profile}))["ClusterRole"]
    groups = {group for rule in role["rules"] for group in rule["apiGroups"]}
    systems = {"volcano": {"scheduling.volcano.sh"}, "kai": {"scheduling.run.ai"}}
    systems["maniple"] = systems["volcano"] | systems["kai"]
    assert groups & systems["maniple"] == systems[profile]
    assert not any("*" in (*rule["resources"], *rule["verbs"]) for rule in role["rules"])


def test_without_roles_it_has_no_owner(helm: Path) -> None:
    made = webhook(rendered(helm, {**ENABLED, "rbac": {"create": False}}))
    assert not {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} & made.keys()
    assert not any(word.startswith("--owner-role") for word in words_of(made["Deployment"]))


def test_a_changed_configuration_rolls_it_out(helm: Path) -> None:
    def checksum(values: Raw) -> str:
        deployment = webhook(rendered(helm, {**ENABLED, **values}))["Deployment"]
        return str(deployment["spec"]["template"]["metadata"]["annotations"]["checksum/configuration"])

    changed = {"configuration": "actions: allocate\npolicy: {queueAccess: closed}\n"}
    assert checksum({}) == checksum({"replicaCount": 3}) != checksum(changed)


@pytest.mark.parametrize(
    ("values", "field"),
    [({"fail": "maybe"}, "fail"), ({"unknownQueue": "no"}, "unknownQueue"), ({"on": True}, "on")],
)
def test_a_wrong_value_is_refused(helm: Path, values: Raw, field: str) -> None:
    with pytest.raises(HelmError, match=field):
        rendered(helm, {"admission": values})
