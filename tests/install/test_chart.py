"""The chart renders what is needed for every choice of values, and refuses values that are wrong."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import maniple
from maniple.cli.main import main
from maniple.live.permissions import (
    BIND_VOLUMES,
    CREATE_QUEUES,
    READ_CONFIG_MAPS,
    REMOVE_GATES,
    WRITE_GROUPS,
)
from maniple.planner import Planner
from tests.install.chart import (
    CHART,
    OPTIONAL_ROLES,
    PROFILES,
    ROLES,
    ROOT,
    HelmError,
    Raw,
    call,
    container,
    one,
    rendered,
)

# Each with the kinds that it adds to those that are always there, or takes away from them.
ALWAYS = {
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "Deployment",
    "PodDisruptionBudget",
    "Service",
    "NetworkPolicy",
    "CustomResourceDefinition",
}
SWITCHES: list[tuple[Raw, set[str]]] = [
    ({}, ALWAYS),
    ({"namespace": {"create": True}}, ALWAYS | {"Namespace"}),
    ({"serviceMonitor": {"enabled": True}}, ALWAYS | {"ServiceMonitor"}),
    ({"prometheusRule": {"enabled": True}}, ALWAYS | {"PrometheusRule"}),
    ({"dashboard": {"enabled": True}}, ALWAYS),
    ({"admission": {"enabled": True}}, ALWAYS),
    ({"crds": {"install": False}}, ALWAYS - {"CustomResourceDefinition"}),
    ({"podDisruptionBudget": {"enabled": False}}, ALWAYS - {"PodDisruptionBudget"}),
    ({"networkPolicy": {"enabled": False}}, ALWAYS - {"NetworkPolicy"}),
    (
        {"serviceAccount": {"create": False, "name": "mine"}, "rbac": {"create": False}},
        ALWAYS - {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
    ),
]
# Everything that takes a list or a mapping.
FULL: Raw = {
    "profile": "kai",
    "bind": "direct",
    "groups": "write",
    "shard": "pool-a",
    "schedulerNames": ["kai-scheduler", "batch"],
    "defaultQueue": "lab",
    "replicaCount": 3,
    "image": {"repository": "registry.example.com/maniple", "digest": "sha256:" + "a" * 64},
    "imagePullSecrets": [{"name": "pull"}],
    "fullnameOverride": "scheduler",
    "configuration": "actions: allocate\n",
    "extraArgs": ["--schedule-period=2s"],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "podAnnotations": {"a": "b"},
    "podLabels": {"team": "batch"},
    "nodeSelector": {"role": "control"},
    "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    ],
    "service": {"annotations": {"prometheus.io/scrape": "true"}},
    "serviceMonitor": {
        "enabled": True,
        "labels": {"release": "prometheus"},
        "tlsConfig": {"insecureSkipVerify": True},
    },
    "http": {
        "port": 9443,
        "tls": {"secretName": "maniple-tls"},
        "authorization": True,
        "debugEndpoints": True,
    },
    "journal": {
        "enabled": True,
        "size": "1Gi",
        "volume": {"persistentVolumeClaim": {"claimName": "journal"}},
    },
    "serviceAccount": {"annotations": {"role": "x"}},
    "rbac": {"extraRules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]},
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "networkPolicy": {
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        "extraEgress": [{"ports": [{"port": 9090}]}],
    },
}


def test_helm_finds_no_fault_with_it(helm: Path) -> None:
    for values in ({}, FULL):
        assert "0 chart(s) failed" in call(helm, "lint", "--strict", str(CHART), values=values)


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_switched_on_is_there_and_nothing_else(helm: Path, profile: str) -> None:
    for values, kinds in SWITCHES:
        items = rendered(helm, {"profile": profile, **values})
        assert {item["kind"] for item in items} == kinds, values
        names = [(item["kind"], item["metadata"]["name"]) for item in items]
        assert len(set(names)) == len(names)


def test_a_journal_without_a_volume_of_its_own_has_an_empty_folder(helm: Path) -> None:
    items = rendered(helm, {"journal": {"enabled": True}})
    volumes = one(items, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert {"name": "journal", "emptyDir": {}} in volumes
    assert "--journal=/var/lib/maniple/journal" in container(items)["args"]


def test_every_value_arrives(helm: Path) -> None:
    items = rendered(helm, FULL)
    everything = json.dumps(items)
    for word in ("pool-a", "batch", "lab", "pull", "prometheus.io/scrape", "--schedule-period=2s", "50%"):
        assert word in everything, word
    assert container(items)["image"] == "registry.example.com/maniple@sha256:" + "a" * 64
    assert one(items, "Deployment")["metadata"]["name"] == "scheduler"
    assert rules_of(items, "ClusterRole", "scheduler:maniple-system:scheduler")[-1]["resources"] == [
        "configmaps"
    ]
    assert "--journal-size=1Gi" in container(items)["args"]
    volumes = one(items, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert {"name": "journal", "persistentVolumeClaim": {"claimName": "journal"}} in volumes
    assert one(items, "NetworkPolicy")["spec"]["ingress"][0]["from"]
    assert one(items, "ConfigMap")["data"] == {"scheduler.conf": "actions: allocate\n"}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"profile": "yunikorn"}, "profile"),
        ({"replicas": 2}, "replicas"),
        ({"image": {"digest": "latest"}}, "digest"),
        ({"bind": "direct"}, "bind"),
        ({"groups": "none"}, "groups"),
        ({"profile": "volcano", "shard": "a"}, "shard"),
        ({"leaderElection": {"leaseDuration": 15}}, "leaseDuration"),
        ({"http": {"port": 0}}, "port"),
        ({"http": {"authorization": True}}, "secretName"),
        ({"http": {"debugEndpoints": True}}, "authorization"),
        ({"rbac": {"removeGates": True}}, "removeGates"),
        ({"profile": "kai", "rbac": {"createQueues": True}}, "createQueues"),
    ],
)
def test_a_wrong_value_is_refused_by_name(helm: Path, values: Raw, field: str) -> None:
    with pytest.raises(HelmError, match=field):
        rendered(helm, values)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_command_line_is_one_that_the_scheduler_accepts(helm: Path, profile: str, tmp_path: Path) -> None:
    for values in ({"profile": profile}, {**FULL, "profile": profile, "bind": "", "shard": ""}, FULL):
        items = rendered(helm, values)
        file = tmp_path / "scheduler.conf"
        file.write_text(one(items, "ConfigMap")["data"]["scheduler.conf"])
        for name in ("tls.crt", "tls.key"):
            (tmp_path / name).touch()
        words = [re.sub(r"/etc/maniple(-tls)?/", f"{tmp_path}/", word) for word in container(items)["args"]]
        assert f"--conf={file}" in words, shlex.join(words)
        command = main.get_command(click.Context(main), words[0])
        assert command is not None
        with command.make_context(words[0], words[1:], parent=click.Context(main, info_name="maniple")):
            pass


@pytest.mark.parametrize("profile", PROFILES)
def test_the_configuration_in_the_config_map_is_the_built_in_one(profile: str) -> None:
    text = (CHART / "files" / "conf" / f"{profile}.conf").read_text(encoding="utf-8")
    shown, built_in = (Planner(conf=conf, profile=profile).configuration for conf in (text, None))
    assert shown.warnings == ()
    assert shown.actions == built_in.actions

    def plugins(configuration: Any) -> list[list[Any]]:
        return [
            [(plugin.name, plugin.switches, plugin.arguments) for plugin in tier]
            for tier in configuration.tiers
        ]

    assert plugins(shown) == plugins(built_in)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_roles_are_those_of_the_examples_rule_by_rule(helm: Path, profile: str) -> None:
    text = (ROOT / "examples" / ROLES[profile]).read_text(encoding="utf-8")
    example, items = list(yaml.safe_load_all(text)), rendered(helm, {"profile": profile})
    for kind in ("ClusterRole", "Role"):
        assert one(items, kind)["rules"] == one(example, kind)["rules"]
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        assert one(items, kind)["subjects"] == one(example, kind)["subjects"]


def rules_of(items: list[Raw], kind: str, name: str) -> list[Raw]:
    (found,) = [item for item in items if (item["kind"], item["metadata"]["name"]) == (kind, name)]
    return list(found["rules"])


def test_the_roles_for_reading_metrics_are_those_of_the_example(helm: Path) -> None:
    text = (ROOT / "examples" / "rbac-metrics.yaml").read_text(encoding="utf-8")
    items = rendered(helm, {**FULL, "fullnameOverride": "maniple"})
    roles = [item for item in yaml.safe_load_all(text) if item["kind"] == "ClusterRole"]
    assert roles
    for role in roles:
        assert rules_of(items, "ClusterRole", role["metadata"]["name"]) == role["rules"]


FEATURES: dict[str, tuple[str, Raw]] = {
    "remove-gates": ("volcano", {"rbac": {"removeGates": True}}),
    "bind-volumes": ("maniple", {"rbac": {"bindVolumes": True}}),
    "create-queues": ("maniple", {"rbac": {"createQueues": True}}),
    "read-config-maps": ("kai", {"rbac": {"readConfigMaps": True}}),
    "bind-directly": ("kai", {"bind": "direct"}),
    "write-groups": ("maniple", {"rbac": {"writeGroups": True}, "groups": "write"}),
}
# Group, resource and verb: what lets its holder do more than schedule.
TOO_MUCH = {
    ("", "pods", "patch"),
    ("", "pods", "create"),
    ("", "nodes", "patch"),
    ("", "persistentvolumes", "patch"),
    ("", "configmaps", "list"),
    ("", "secrets", "list"),
    ("", "secrets", "get"),
    ("scheduling.volcano.sh", "queues", "create"),
    ("scheduling.volcano.sh", "queues", "patch"),
    ("scheduling.run.ai", "queues", "create"),
    ("scheduling.volcano.sh", "podgroups", "create"),
    ("scheduling.volcano.sh", "podgroups", "delete"),
    ("scheduling.run.ai", "podgroups", "create"),
    ("scheduling.run.ai", "podgroups", "delete"),
}


COMPONENT = "app.kubernetes.io/component"


def _kind_of(item: Raw) -> str:
    return str(item["kind"])


def permissions(items: list[Raw]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for item in items
        if item["kind"] == "ClusterRole"
        for rule in item["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_by_default_nothing_is_allowed_that_is_more_than_scheduling(helm: Path, profile: str) -> None:
    allowed = permissions(rendered(helm, {"profile": profile}))
    assert not allowed & TOO_MUCH
    assert not any("*" in permission for permission in allowed)


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_has_a_role_of_its_own_that_its_value_adds(helm: Path, feature: str) -> None:
    profile, values = FEATURES[feature]
    before, after = (rendered(helm, {"profile": profile, **more}) for more in ({}, values))
    added = sorted((item for item in after if item not in before), key=_kind_of)
    text = (ROOT / "examples" / OPTIONAL_ROLES).read_text(encoding="utf-8")
    items = yaml.safe_load_all(text)
    example = sorted((one for one in items if one["metadata"]["labels"][COMPONENT] == feature), key=_kind_of)
    added = [item for item in added if item["kind"] != "Deployment"]
    for item in (*added, *example):
        item["metadata"].pop("labels")
    assert added == example


def test_every_feature_in_the_examples_is_one_of_the_chart() -> None:
    text = (ROOT / "examples" / OPTIONAL_ROLES).read_text(encoding="utf-8")
    items = list(yaml.safe_load_all(text))
    assert {item["metadata"]["labels"][COMPONENT] for item in items} == FEATURES.keys()
    for item in items:
        feature = item["metadata"]["labels"][COMPONENT]
        assert re.split("[.:]", item["metadata"]["name"]) == ["maniple", "maniple-system", feature]


def test_messages_name_values_of_the_chart() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    for feature in (REMOVE_GATES, BIND_VOLUMES, CREATE_QUEUES, READ_CONFIG_MAPS, *WRITE_GROUPS):
        section, _, name = feature.value.partition(".")
        assert values[section][name] is False


def test_the_container_may_do_nothing_that_it_does_not_need(helm: Path) -> None:
    items = rendered(helm, {})
    spec, own = one(items, "Deployment")["spec"]["template"]["spec"], container(items)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert own["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert one(items, "Deployment")["spec"]["replicas"] == 2
    assert "--leader-elect" in own["args"]
    assert own["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert own["readinessProbe"]["httpGet"]["path"] == "/readyz"


@pytest.mark.parametrize(
    ("name", "namespace"), [("pool-b", "maniple-system"), ("maniple", "other"), ("maniple-system", "maniple")]
)
def test_a_second_release_shares_no_name_with_the_first(helm: Path, name: str, namespace: str) -> None:
    everything = {"crds": {"install": False}, "profile": "volcano", "http": FULL["http"]}
    everything["admission"] = {"enabled": True}
    everything["rbac"] = dict.fromkeys(
        ("removeGates", "bindVolumes", "createQueues", "readConfigMaps", "writeGroups"), True
    )
    first, second = (
        {
            (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"])
            for item in rendered(helm, everything, *place)
        }
        for place in (("maniple", "maniple-system"), (name, namespace))
    )
    assert len(first) > 10
    assert not first & second


def test_the_examples_share_no_name_of_a_cluster_role() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("rbac*.yaml")]
    items = [item for text in texts for item in yaml.safe_load_all(text)]
    names = [item["metadata"]["name"] for item in items if item["kind"] == "ClusterRole"]
    assert len(set(names)) == len(names)


def test_chart_and_package_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == maniple.__version__


def test_every_value_is_in_the_schema_and_every_name_of_the_schema_is_a_value() -> None:
    def check(schema: Raw, values: Any, path: str) -> None:
        if "properties" not in schema:
            return
        assert set(schema["properties"]) - {"global"} == set(values), path
        for name, inner in schema["properties"].items():
            if name != "global":
                check(inner, values[name], f"{path}.{name}")

    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    check(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")), values, "")
