"""Reading Volcano's and KAI's configuration files: every key, every default, every warning, never a stray exception."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.framework.configuration.loading import (
    KAI_SWITCHES,
    VOLCANO_SWITCHES,
    Configuration,
    ConfigurationError,
    PluginOption,
    load_kai,
    load_volcano,
)

VOLCANO_ACTIONS = (
    "enqueue",
    "allocate",
    "backfill",
    "reclaim",
    "preempt",
    "gangpreempt",
    "gangreclaim",
    "shuffle",
)
KAI_ACTIONS = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")

VOLCANO_FILE = """\
actions: "enqueue, allocate, backfill , preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
    enabledVictim: no
- plugins:
  - name: drf
    enableHierarchy: true
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.resources: nvidia.com/gpu, example.com/foo
      binpack.resources.nvidia.com/gpu: 2
  - name: tdm
    arguments:
      tdm.revocable-zone.rz1: 10:00
      tdm.evict.period: 1m
configurations:
- name: allocate
  arguments:
    predicateErrorCacheEnable: true
- name: preempt
  arguments: {minCandidateNodesPercentage: 10}
metrics:
  type: prometheus
  address: http://prometheus:9090
  interval: 30s
  tls.insecureSkipVerify: yes
"""

KAI_FILE = """\
actions: allocate, reclaim
tiers:
- plugins:
  - name: predicates
  - name: proportion
    disableQueueOrder: true
    arguments:
      kValue: 1.5
      flag: yes
queueDepthPerAction:
  allocate: 25
  reclaim: -1
usageDBConfig:
  clientType: prometheus
  connectionString: http://prometheus:9090
  usageParams:
    halfLifePeriod: 10m
    windowSize: 1w
    windowType: tumbling
    tumblingWindowStartTime: 2026-01-01T00:00:00Z
    cronString: "0 0 * * *"
    fetchInterval: 1m
    stalenessPeriod: 5m
    waitTimeout: 1m
    extraParams:
      usageQueryTimeout: 10s
      queryResolution: 1m
      gpuAllocationMetric: a
      cpuAllocationMetric: b
      memoryAllocationMetric: c
      gpuCapacityMetric: d
      cpuCapacityMetric: e
      memoryCapacityMetric: f
"""


def volcano(source: Any) -> Configuration:
    return load_volcano(source, name="conf", known_actions=VOLCANO_ACTIONS)


def kai(source: Any) -> Configuration:
    return load_kai(source, name="conf", known_actions=KAI_ACTIONS)


def plugin_names(configuration: Configuration) -> list[list[str]]:
    return [[option.name for option in tier] for tier in configuration.tiers]


def failure(load: Callable[[Any], Configuration], source: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load(source)
    return caught.value


class TestVolcano:
    def test_built_in_default(self) -> None:
        configuration = volcano(None)
        assert configuration.actions == ("enqueue", "allocate", "backfill")
        assert plugin_names(configuration) == [
            ["priority", "gang", "conformance"],
            ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
        ]
        assert configuration.compat == "better"
        assert configuration.warnings == ()
        assert set(configuration.tiers[0][0].switches) == set(VOLCANO_SWITCHES)

    def test_default_does_not_depend_on_registered_actions(self) -> None:
        assert load_volcano(None, known_actions=()).actions == ("enqueue", "allocate", "backfill")

    def test_whole_file(self) -> None:
        configuration = volcano(VOLCANO_FILE)
        assert configuration.actions == ("enqueue", "allocate", "backfill", "preempt")
        assert plugin_names(configuration) == [["priority", "gang"], ["drf", "binpack", "tdm"]]
        gang = configuration.tiers[0][1]
        assert not gang.enabled("enablePreemptable")
        assert not gang.enabled("enabledVictim")
        assert gang.enabled("enableJobReady")
        assert gang.line == 5
        assert configuration.tiers[1][0].enabled("enableHierarchy")
        assert configuration.tiers[1][1].arguments == {
            "binpack.weight": 10,
            "binpack.resources": "nvidia.com/gpu, example.com/foo",
            "binpack.resources.nvidia.com/gpu": 2,
        }
        assert configuration.tiers[1][2].arguments["tdm.revocable-zone.rz1"] == "10:00"
        assert configuration.action_arguments == {
            "allocate": {"predicateErrorCacheEnable": True},
            "preempt": {"minCandidateNodesPercentage": 10},
        }
        assert configuration.metrics == {
            "type": "prometheus",
            "address": "http://prometheus:9090",
            "interval": "30s",
            "tls.insecureSkipVerify": "yes",
        }
        assert configuration.warnings == ()

    def test_parsed_mapping_means_the_same_as_its_text(self) -> None:
        source = yaml.safe_load(VOLCANO_FILE.replace("10:00", '"10:00"').replace(": yes", ': "yes"'))
        parsed, read = volcano(source), volcano(VOLCANO_FILE)
        assert parsed.actions == read.actions
        assert parsed.action_arguments == read.action_arguments
        assert parsed.metrics == read.metrics
        for left, right in zip(sum(parsed.tiers, ()), sum(read.tiers, ()), strict=True):
            assert (left.name, left.switches, left.arguments) == (right.name, right.switches, right.arguments)
            assert left.line is None

    @pytest.mark.parametrize("switch", VOLCANO_SWITCHES)
    @pytest.mark.parametrize(
        ("written", "expected"),
        [("true", True), ("false", False), ("no", False), ('"True"', True), ('"off"', False), ('"1"', True)],
    )
    def test_every_switch_is_read(self, switch: str, written: str, expected: bool) -> None:
        configuration = volcano(
            f"actions: allocate\ntiers:\n- plugins:\n  - name: x\n    {switch}: {written}\n"
        )
        option = configuration.tiers[0][0]
        assert option.switches[switch] is expected
        assert option.enabled(switch) is expected
        others = {name: on for name, on in option.switches.items() if name != switch}
        off = {"enableHierarchy", "enabledClusterOrder"}
        assert others == {name: name not in off for name in VOLCANO_SWITCHES if name != switch}
        assert configuration.warnings == ()

    def test_there_are_25_switches_nine_of_them_with_a_d(self) -> None:
        assert len(set(VOLCANO_SWITCHES)) == 25
        assert sum(name.startswith("enabled") for name in VOLCANO_SWITCHES) == 9

    def test_switch_without_value_is_unset(self) -> None:
        option = volcano(
            "actions: allocate\ntiers: [{plugins: [{name: x, enableJobOrder: , enableHierarchy: ~}]}]"
        ).tiers[0][0]
        assert option.enabled("enableJobOrder")
        assert not option.enabled("enableHierarchy")

    def test_misspelt_switch_in_code_is_an_error_not_a_default(self) -> None:
        with pytest.raises(KeyError):
            PluginOption("x").enabled("enableVictim")

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("action: x\nactions: allocate", 'conf:1: action: unknown key, ignored; did you mean "actions"?'),
            ("actions: allocate\nzebra: 1", "conf:2: zebra: unknown key, ignored"),
            (
                "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enabledJobOrder: true",
                'conf:5: tiers[0].plugins[0].enabledJobOrder: unknown key, ignored; did you mean "enableJobOrder"?',
            ),
            (
                "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enableOverused: true",
                'conf:5: tiers[0].plugins[0].enableOverused: unknown key, ignored; did you mean "enabledOverused"?',
            ),
            (
                "actions: allocate\ntiers:\n- plugins: [{name: x}]\n  plugin: 3",
                'conf:4: tiers[0].plugin: unknown key, ignored; did you mean "plugins"?',
            ),
            (
                "actions: allocate\ntiers:\n- plugins:\n  - name: x\n- plugins:\n  - name: x",
                'conf:6: tiers[1].plugins[0]: plugin "x" is listed a second time, first at tiers[0].plugins[0]',
            ),
            (
                "actions: allocate\nconfigurations:\n- name: alocate",
                'conf:3: configurations[0].name: unknown action "alocate", ignored; did you mean "allocate"?',
            ),
            (
                "actions: allocate\nconfigurations:\n- name: allocate\n  args: {}",
                "conf:4: configurations[0].args: unknown key, ignored",
            ),
            (
                "actions: allocate\nmetrics:\n  elasticsearch.indx: a",
                'conf:3: metrics["elasticsearch.indx"]: unknown metrics setting, ignored; did you mean "elasticsearch.index"?',
            ),
            (
                "actions: allocate\nmetrics:\n  type: graphite",
                "conf:3: metrics.type: the source of metrics must be one of prometheus, prometheus_adaptor, elasticsearch",
            ),
            ("actions: allocate\n---\nactions: x", "conf:2: only the first document of the text is read"),
        ],
    )
    def test_what_volcano_passes_over_is_warned_of(self, text: str, expected: str) -> None:
        assert expected in volcano(text).warnings

    def test_first_configuration_of_an_action_counts(self) -> None:
        configuration = volcano(
            "actions: allocate\nconfigurations:\n- {name: allocate, arguments: {a: 1}}\n- {name: allocate, arguments: {a: 2}}"
        )
        assert configuration.action_arguments == {"allocate": {"a": 1}}
        assert (
            'conf:4: configurations[1]: action "allocate" was configured before, this entry is ignored'
            in configuration.warnings
        )

    def test_unregistered_plugins_are_not_an_error(self) -> None:
        configuration = volcano("actions: allocate\ntiers: [{plugins: [{name: magic}]}]")
        assert plugin_names(configuration) == [["magic"]]
        assert configuration.warnings == ()

    def test_actions_as_a_list(self) -> None:
        assert volcano({"actions": ["allocate", " backfill "], "tiers": []}).actions == (
            "allocate",
            "backfill",
        )

    def test_tiers_without_actions_run_the_default_actions(self) -> None:
        configuration = volcano({"tiers": [{"plugins": [{"name": "gang"}]}], "compat": "strict"})
        assert configuration.actions == ("enqueue", "allocate", "backfill")
        assert plugin_names(configuration) == [["gang"]]
        assert configuration.compat == "strict"
        assert len(configuration.warnings) == 1

    @pytest.mark.parametrize("source", ["", "# nothing\n", "compat: better\n", {}])
    def test_file_that_says_nothing_is_the_default(self, source: Any) -> None:
        configuration = volcano(source)
        assert (configuration.actions, configuration.tiers) == (volcano(None).actions, volcano(None).tiers)
        assert len(configuration.warnings) == 2

    def test_actions_without_tiers_run_without_plugins(self) -> None:
        configuration = volcano("actions: allocate")
        assert configuration.tiers == ()
        assert any("no plugins" in warning for warning in configuration.warnings)

    def test_empty_tiers_and_arguments_may_be_left_blank(self) -> None:
        configuration = volcano(
            "actions: allocate\ntiers:\n-\n- plugins:\n- plugins:\n  - name: x\n    arguments:\n"
        )
        assert plugin_names(configuration) == [[], [], ["x"]]
        assert configuration.tiers[2][0].arguments == {}

    def test_drf_hierarchy_and_proportion_in_different_tiers_agree(self) -> None:
        text = "actions: allocate\ntiers:\n- plugins: [{name: drf, enableHierarchy: true}]\n- plugins: [{name: proportion}]"
        assert plugin_names(volcano(text)) == [["drf"], ["proportion"]]


class TestKai:
    def test_built_in_default(self) -> None:
        configuration = kai(None)
        assert configuration.actions == KAI_ACTIONS
        (tier,) = plugin_names(configuration)
        assert " ".join(tier) == (
            "predicates proportion priority elastic kubeflow ray nodeavailability gpusharingorder gpupack "
            "resourcetype subgrouporder taskorder nominatednode dynamicresources nodeplacement minruntime "
            "topology snapshot"
        )
        arguments = {option.name: option.arguments for option in configuration.tiers[0] if option.arguments}
        assert arguments == {"nodeplacement": {"cpu": "binpack", "gpu": "binpack"}}
        assert configuration.queue_depth == {}
        assert configuration.usage == {}

    def test_whole_file(self) -> None:
        configuration = kai(KAI_FILE)
        assert configuration.actions == ("allocate", "reclaim")
        proportion = configuration.tiers[0][1]
        assert proportion.arguments == {"kValue": "1.5", "flag": "true"}
        assert proportion.switches == {"disableQueueOrder": True}
        assert configuration.queue_depth == {"allocate": 25, "reclaim": -1}
        assert configuration.usage["clientType"] == "prometheus"
        assert configuration.usage["usageParams"]["tumblingWindowStartTime"] == "2026-01-01T00:00:00Z"
        assert len(configuration.usage["usageParams"]) == 9
        assert len(configuration.usage["usageParams"]["extraParams"]) == 8

    @pytest.mark.parametrize("switch", KAI_SWITCHES)
    def test_every_disable_switch_is_kept_and_said_to_do_nothing(self, switch: str) -> None:
        configuration = kai(f"tiers: [{{plugins: [{{name: x, {switch}: true}}]}}]")
        assert configuration.tiers[0][0].switches == {switch: True}
        (warning,) = configuration.warnings
        assert warning.startswith(f"conf:1: tiers[0].plugins[0].{switch}: has no effect")

    def test_a_switch_that_disables_nothing_is_no_news(self) -> None:
        assert kai("tiers: [{plugins: [{name: x, disableJobOrder: false}]}]").warnings == ()

    @pytest.mark.parametrize(
        "source",
        ["", "actions:\ntiers:\nqueueDepthPerAction:\n", {"actions": "", "tiers": []}, {"actions": []}],
    )
    def test_missing_parts_fall_back_to_the_default(self, source: Any) -> None:
        configuration, default = kai(source), kai(None)
        assert (configuration.actions, configuration.tiers) == (default.actions, default.tiers)

    def test_keys_match_in_any_case(self) -> None:
        configuration = kai("Actions: allocate\nQueueDepthPeraction: {allocate: 3}\ncompat: strict")
        assert configuration.actions == ("allocate",)
        assert configuration.queue_depth == {"allocate": 3}
        assert configuration.compat == "strict"

    def test_environment_variable_instead_of_a_connection_string(self) -> None:
        usage = kai("usageDBConfig: {clientType: fake, connectionStringEnvVar: URL}").usage
        assert usage == {"clientType": "fake", "connectionStringEnvVar": "URL"}

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("configurations: []", "conf:1: configurations: unknown key, ignored"),
            (
                "queueDepthPerAction:\n  alocate: 1",
                'conf:2: queueDepthPerAction.alocate: unknown action, ignored; did you mean "allocate"?',
            ),
            (
                "tiers:\n- plugins:\n  - name: x\n    enableJobOrder: true",
                "conf:4: tiers[0].plugins[0].enableJobOrder: unknown key, ignored",
            ),
            (
                "usageDBConfig:\n  clientType: fake\n  connectionString: x\n  usageParam: {}",
                'conf:4: usageDBConfig.usageParam: unknown key, ignored; did you mean "usageParams"?',
            ),
            (
                "usageDBConfig:\n  clientType: fake\n  connectionString: x\n  usageParams:\n    windowSise: 1w",
                'conf:5: usageDBConfig.usageParams.windowSise: unknown key, ignored; did you mean "windowSize"?',
            ),
            (
                "usageDBConfig:\n  clientType: fake\n  connectionString: x\n  usageParams:\n    extraParams:\n      zzz: 1",
                "conf:6: usageDBConfig.usageParams.extraParams.zzz: unknown parameter, ignored",
            ),
        ],
    )
    def test_unknown_names_are_warned_of(self, text: str, expected: str) -> None:
        assert expected in kai(text).warnings


class TestConfigMap:
    @pytest.mark.parametrize("key", ["volcano-scheduler.conf", "volcano-scheduler-ci.conf"])
    def test_volcano_file_inside(self, key: str) -> None:
        wrapped = {"apiVersion": "v1", "kind": "ConfigMap", "data": {key: VOLCANO_FILE, "README": "hello"}}
        for source in (wrapped, yaml.safe_dump(wrapped)):
            assert volcano(source) == volcano(VOLCANO_FILE)

    def test_the_well_known_key_comes_first(self) -> None:
        data = {"a.conf": "actions: x", "volcano-scheduler.conf": "actions: allocate"}
        assert volcano({"kind": "ConfigMap", "data": data}).actions == ("allocate",)

    def test_kai_file_inside(self) -> None:
        inside = kai({"kind": "ConfigMap", "data": {"config.yaml": KAI_FILE}})
        # what is said about it names another source
        assert replace(inside, warnings=()) == replace(kai(KAI_FILE), warnings=())

    def test_lines_count_inside_and_the_source_says_so(self) -> None:
        text = (
            "kind: ConfigMap\nmetadata: {name: c}\ndata:\n  x.conf: |\n    actions: allocate\n    tiers: 3\n"
        )
        error = failure(volcano, text)
        assert str(error).startswith('conf (lines within data["x.conf"]):2: tiers: tiers must be a list')

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ({"kind": "ConfigMap"}, 'wanted "volcano-scheduler.conf" or a key ending in ".conf"'),
            ({"kind": "ConfigMap", "data": {"config.yaml": ""}}, "no configuration"),
            (
                {"kind": "ConfigMap", "data": {"a.conf": "", "b.conf": ""}},
                'several configurations: "a.conf", "b.conf"',
            ),
            ({"kind": "ConfigMap", "data": []}, "data must be a mapping"),
            ({"kind": "ConfigMap", "data": {"a.conf": {}}}, "must be text"),
        ],
    )
    def test_unusable_config_maps(self, source: Any, message: str) -> None:
        assert message in failure(volcano, source).message


def load_either(source: Any) -> None:
    """Both loaders: a configuration or a ConfigurationError; what they say fits on one line each."""
    for load, actions in ((load_volcano, VOLCANO_ACTIONS), (load_kai, KAI_ACTIONS)):
        try:
            lines = load(source, known_actions=actions).warnings
        except ConfigurationError as error:
            lines = (str(error),)
        assert all(len(line.splitlines()) == 1 for line in lines)


FRAGMENTS = st.sampled_from(
    [
        "\n",
        "- ",
        ": ",
        "[",
        "]",
        "{",
        "}",
        "&a ",
        "*a",
        "<<: ",
        "? ",
        "!!int ",
        "|\n",
        '"',
        "'",
        "#",
        "---\n",
        "\t",
        "  ",
    ]
)
FILES = [VOLCANO_FILE, KAI_FILE, yaml.safe_dump({"kind": "ConfigMap", "data": {"x.conf": VOLCANO_FILE}})]


@settings(deadline=None)
@given(st.data())
def test_corrupted_texts_give_a_configuration_or_its_error(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(FILES))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(FRAGMENTS | st.text(max_size=4)) + text[at + length :]
    load_either(text)


@settings(deadline=None)
@given(st.text())
def test_any_text_gives_a_configuration_or_its_error(text: str) -> None:
    load_either(text)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=3)
    | st.dates()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8) | st.integers() | st.booleans() | st.none(), inner, max_size=3)
        | st.tuples(inner)
    ),
    max_leaves=8,
)


def corrupt(data: st.DataObject, value: Any) -> Any:
    """Walk to a random place and put something else there, take it away or add to it."""
    if not value or not isinstance(value, dict | list) or data.draw(st.integers(0, 4)) == 0:
        return data.draw(VALUES)
    if isinstance(value, list):
        index = data.draw(st.integers(0, len(value) - 1))
        value[index] = corrupt(data, value[index])
        return value
    key = data.draw(st.sampled_from(list(value)))
    if data.draw(st.booleans()):
        value[key] = corrupt(data, value[key])
    elif data.draw(st.booleans()):
        del value[key]
    else:
        value[data.draw(st.text(max_size=8) | st.integers() | st.tuples(st.integers()))] = data.draw(VALUES)
    return value


@settings(deadline=None)
@given(st.data())
def test_corrupted_mappings_give_a_configuration_or_its_error(data: st.DataObject) -> None:
    source = copy.deepcopy(data.draw(st.sampled_from([yaml.safe_load(text) for text in FILES])))
    for _ in range(data.draw(st.integers(1, 3))):
        source = corrupt(data, source)
    load_either(source)


def test_cyclic_mapping_is_refused() -> None:
    source: dict[str, Any] = {"actions": "allocate"}
    source["tiers"] = [source]
    with pytest.raises(ConfigurationError, match="levels deep"):
        load_volcano(source, known_actions=VOLCANO_ACTIONS)


def test_shared_structure_is_counted_as_often_as_it_appears() -> None:
    shared: list[Any] = [1]
    for _ in range(30):
        shared = [shared, shared]
    with pytest.raises(ConfigurationError, match="more than 20000 values"):
        load_volcano({"tiers": shared}, known_actions=VOLCANO_ACTIONS)


def test_the_configuration_keeps_its_own_copy() -> None:
    source = {"actions": "allocate", "tiers": [{"plugins": [{"name": "x", "arguments": {"a": [1]}}]}]}
    configuration = load_volcano(source, known_actions=VOLCANO_ACTIONS)
    source["tiers"][0]["plugins"][0]["arguments"]["a"].append(2)  # type: ignore[index]
    assert configuration.tiers[0][0].arguments == {"a": [1]}


def test_warnings_have_an_end() -> None:
    text = "actions: allocate\n" + "".join(f"enableJobOrdr{number}: 1\n" for number in range(5000))
    warnings = load_volcano(text, known_actions=VOLCANO_ACTIONS).warnings
    assert len(warnings) == 101
    assert warnings[-1] == "configuration: further warnings are left out"
