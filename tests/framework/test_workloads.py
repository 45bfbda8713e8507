"""The key `workloads` of a configuration file: custom resources whose pods are groups."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from maniple.cli.main import main
from maniple.framework.configuration.compare import differences
from maniple.framework.configuration.loading import ConfigurationError
from maniple.planner import Planner

PROFILES = pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
START = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: predicates\nworkloads:\n'
ENTRY = f"{START}- apiVersion: example.com/v1\n  kind: Run\n"
ROLES = f"{ENTRY}  roles:\n  - name: worker\n    labels: {{role: worker}}\n"


@PROFILES
def test_a_file_may_describe_kinds(profile: str) -> None:
    (found,) = Planner(f"{ENTRY}  minimum: $.spec.least\n", profile=profile).configuration.workloads
    assert (found.api_version, found.kind, found.plural) == ("example.com/v1", "Run", "runs")
    assert found.pods.minimum is not None
    assert found.pods.minimum.steps == ("spec", "least")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{START}- kind: Run\n", ":6: workloads[0]: an entry of workloads needs apiVersion"),
        (
            f"{START}- apiVersion: v1\n  kind: Run\n",
            ":6: workloads[0].apiVersion: must be a group and a version",
        ),
        (f"{START}- apiVersion: example.com/v1\n  kind: run\n", ":7: workloads[0].kind: must be the kind"),
        (f"{ENTRY}  plural: Runs\n", ":8: workloads[0].plural: must be the name of its resource"),
        (f"{ENTRY}  minumum: a\n", ':8: workloads[0].minumum: unknown field; did you mean "minimum"?'),
        (
            f"{ENTRY}  minimum: $.spec..least\n",
            ":8: workloads[0].minimum: is no JSONPath that is supported: position 7: descendants",
        ),
        (f"{ENTRY}  minimum: 3\n", ":8: workloads[0].minimum: a JSONPath must be text"),
        (
            f"{ENTRY}  queue: $.spec.all[*].queue\n",
            ":8: workloads[0].queue: must name one field, without [*]",
        ),
        (f"{ENTRY}  template: $.spec.template\n", ":6: workloads[0]: template needs replicas"),
        (
            f"{ENTRY}- apiVersion: example.com/v1\n  kind: Run\n",
            "workloads[1]: Run (example.com/v1) has an entry",
        ),
        (ROLES, ":9: workloads[0].roles[0]: a role needs minimum or replicas"),
        (
            f"{ROLES}    minimum: $.a\n  - name: worker\n    labels: {{a: b}}\n    minimum: $.b\n",
            ':12: workloads[0].roles[1]: there is a role "worker" already',
        ),
        (
            f"{ROLES}    minimum: $.a\n  replicas: $.b\n",
            "workloads[0].replicas: is said by each of the roles",
        ),
        (
            f"{ENTRY}  roles:\n  - name: worker\n    labels: {{}}\n    minimum: $.a\n",
            "workloads[0].roles[0].labels: needs the labels by which its pods are known",
        ),
        (f"{START}  Run: {{}}\n", ":5: workloads: workloads must be a list"),
    ],
)
def test_a_mistake_is_an_error_that_names_entry_and_field(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        Planner(text, profile="maniple")
    assert message in str(error.value)


def test_a_change_is_a_difference() -> None:
    before = Planner(f"{ENTRY}  minimum: $.spec.least\n", profile="maniple").configuration
    after = Planner(f"{ENTRY}  minimum: $.spec.most\n", profile="maniple").configuration
    assert differences(before, after) == [
        "workloads: Run (example.com/v1): minimum: $.spec.least → $.spec.most"
    ]
    assert differences(before, before) == []


def test_the_check_names_the_entry_and_the_effective_configuration_shows_it(tmp_path: Path) -> None:
    file = tmp_path / "maniple.conf"
    file.write_text(f"{ENTRY}  minimum: $.spec.least[\n")
    found = CliRunner().invoke(main, ["config", "check", str(file)])
    assert found.exit_code != 0
    assert "workloads[0].minimum: is no JSONPath that is supported: position 13" in found.output
    file.write_text(f"{ROLES}    replicas: $.spec.workers\n  queue: $.spec.queue\n")
    shown = CliRunner().invoke(main, ["config", "show", str(file)])
    assert (
        '"roles": [{"name": "worker", "labels": {"role": "worker"}, "replicas": "$.spec.workers"}]'
        in shown.output
    )
