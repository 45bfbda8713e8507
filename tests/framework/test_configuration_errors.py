"""A configuration file of a wrong shape gives one error that names the source, the line and the path."""

from collections.abc import Callable
from typing import Any

import pytest

from maniple.framework.configuration.loading import Configuration, ConfigurationError, load_kai, load_volcano


def volcano(source: Any) -> Configuration:
    return load_volcano(source, name="conf", known_actions=("enqueue", "allocate", "backfill"))


def kai(source: Any) -> Configuration:
    return load_kai(source, name="conf", known_actions=("allocate", "consolidation", "reclaim"))


def failure(load: Callable[[Any], Configuration], source: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load(source)
    return caught.value


HEAD = "actions: allocate\n"
TIER = HEAD + "tiers:\n- plugins:\n"


@pytest.mark.parametrize(
    ("text", "line", "path", "message"),
    [
        ("- a", 1, "", "the configuration must be a mapping, found a list"),
        ("conf.yaml", 1, "", 'found the text "conf.yaml"'),
        ("\nactions: 5", 2, "actions", "must be text, found the number 5"),
        ("\nactions: {a: 1}", 2, "actions", "must be text, found a mapping"),
        ('actions: ""', 1, "actions", "an action name is empty"),
        ('actions: "allocate,,backfill"', 1, "actions", "an action name is empty"),
        ("actions: allocate,", 1, "actions", "an action name is empty"),
        ("actions: alocate", 1, "actions", 'there is no action "alocate"; did you mean "allocate"?'),
        ("actions: []", 1, "actions", "no action is named"),
        ("actions:\n- allocate\n- 3", 3, "actions[1]", "must be text"),
        ("actions:\n- allocate\n- bind", 3, "actions[1]", 'there is no action "bind"'),
        (HEAD + "tiers: gang", 2, "tiers", 'must be a list, found the text "gang"'),
        (HEAD + "tiers:\n  plugins: []", 2, "tiers", "must be a list, found a mapping"),
        (HEAD + "tiers:\n- gang", 3, "tiers[0]", "a tier must be a mapping"),
        (HEAD + "tiers:\n- plugins: gang", 3, "tiers[0].plugins", "must be a list"),
        (TIER + "  - gang", 4, "tiers[0].plugins[0]", "a plugin must be a mapping"),
        (TIER + "  - name: a\n  -", 5, "tiers[0].plugins[1]", "a plugin needs a name"),
        (TIER + "  - enableJobOrder: true", 4, "tiers[0].plugins[0]", "a plugin needs a name"),
        (TIER + "  - name:", 4, "tiers[0].plugins[0].name", "must be text, found nothing"),
        (TIER + "  - name: ' '", 4, "tiers[0].plugins[0].name", "is empty"),
        (TIER + "  - name: 7", 4, "tiers[0].plugins[0].name", "must be text, found the number 7 (quote it)"),
        (
            TIER + "  - name: a\n    enableJobOrder: maybe",
            5,
            "tiers[0].plugins[0].enableJobOrder",
            'must be true or false, found the text "maybe"',
        ),
        (TIER + "  - name: a\n    enabledVictim: 1", 5, "tiers[0].plugins[0].enabledVictim", "true or false"),
        (TIER + "  - name: a\n    arguments: x", 5, "tiers[0].plugins[0].arguments", "must be a mapping"),
        (
            TIER + "  - name: proportion\n  - name: drf\n    enableHierarchy: true",
            6,
            "tiers[0].plugins[1].enableHierarchy",
            "conflicts",
        ),
        (HEAD + "configurations: {}", 2, "configurations", "must be a list"),
        (HEAD + "configurations: [3]", 2, "configurations[0]", "must be a mapping"),
        (HEAD + "configurations:\n- arguments: {}", 3, "configurations[0]", "needs the name"),
        (HEAD + "configurations:\n- name: [a]", 3, "configurations[0].name", "must be text"),
        (
            HEAD + "configurations:\n- name: allocate\n  arguments: 3",
            4,
            "configurations[0].arguments",
            "must be a mapping",
        ),
        (HEAD + "metrics: x", 2, "metrics", "must be a mapping"),
        (HEAD + "metrics:\n  type: {a: b}", 3, "metrics.type", "must be text"),
        (HEAD + "compat: exact", 2, "compat", 'must be "strict" or "better"'),
        (HEAD + "tiers: []\nactions: backfill", 3, "actions", "the key stands twice, first on line 1"),
        (TIER + "  - name: a\n    name: b", 5, "tiers[0].plugins[0].name", "first on line 4"),
        (HEAD + "tiers: [", 2, "tiers[0]", "not valid YAML"),
        (HEAD + "\tb: c", 2, "actions", "not valid YAML"),
        (HEAD + 'a: "b\nc: d', 3, "a", "(begun on line 2)"),
        (HEAD + "a: \x01", 2, "", "U+0001"),
        (HEAD + "a: !!python/name:os.system x", 2, "a", "is not read here"),
        (HEAD + "? [a, b]\n: c", 2, "", "a key must be text"),
    ],
)
def test_wrong_volcano_files_say_where(text: str, line: int, path: str, message: str) -> None:
    error = failure(volcano, text)
    assert (error.source, error.line, error.path) == ("conf", line, path)
    assert message in error.message
    assert str(error) == f"conf:{line}: {path + ': ' if path else ''}{error.message}"


USAGE = "usageDBConfig:\n  clientType: fake\n"


@pytest.mark.parametrize(
    ("text", "line", "path", "message"),
    [
        ("actions: alocate", 1, "actions", 'did you mean "allocate"?'),
        ("actions: allocate,", 1, "actions", "is empty"),
        ("tiers: {}", 1, "tiers", "must be a list"),
        ("tiers:\n- plugins:\n  - {}", 3, "tiers[0].plugins[0]", "a plugin needs a name"),
        (
            "tiers:\n- plugins:\n  - name: a\n    arguments:\n      k: [1]",
            5,
            "tiers[0].plugins[0].arguments.k",
            "must be text, found a list",
        ),
        (
            "tiers:\n- plugins:\n  - name: a\n    disableJobOrder: perhaps",
            4,
            "tiers[0].plugins[0].disableJobOrder",
            "true or false",
        ),
        ("queueDepthPerAction: 3", 1, "queueDepthPerAction", "must be a mapping"),
        ("queueDepthPerAction:\n  allocate: x", 2, "queueDepthPerAction.allocate", "must be an integer"),
        ("queueDepthPerAction:\n  allocate: true", 2, "queueDepthPerAction.allocate", "must be an integer"),
        ("queueDepthPerAction:\n  allocate: 1.5", 2, "queueDepthPerAction.allocate", "must be an integer"),
        ("queueDepthPerAction:\n  allocate: -2", 2, "queueDepthPerAction.allocate", "at least 0"),
        ("usageDBConfig: x", 1, "usageDBConfig", "must be a mapping"),
        ("usageDBConfig: {}", 1, "usageDBConfig", "clientType must be one of"),
        ("usageDBConfig:\n  clientType: promtheus", 2, "usageDBConfig.clientType", '"prometheus"?'),
        (USAGE, 1, "usageDBConfig", "either connectionString or connectionStringEnvVar"),
        (
            USAGE + "  connectionString: a\n  connectionStringEnvVar: b",
            1,
            "usageDBConfig",
            "exclude each other",
        ),
        (USAGE + "  connectionString: [a]", 3, "usageDBConfig.connectionString", "must be text"),
        (
            USAGE + "  connectionString: a\n  usageParams: 3",
            4,
            "usageDBConfig.usageParams",
            "must be a mapping",
        ),
        (
            USAGE + "  connectionString: a\n  usageParams:\n    windowType: square",
            5,
            "usageDBConfig.usageParams.windowType",
            "one of sliding, tumbling, cron",
        ),
        (
            USAGE + "  connectionString: a\n  usageParams:\n    extraParams: []",
            5,
            "usageDBConfig.usageParams.extraParams",
            "must be a mapping",
        ),
        ("compat: 1", 1, "compat", '"strict" or "better"'),
        ("actions: allocate\nActions: allocate", 2, "Actions", 'says "actions" a second time'),
    ],
)
def test_wrong_kai_files_say_where(text: str, line: int, path: str, message: str) -> None:
    error = failure(kai, text)
    assert (error.source, error.line, error.path) == ("conf", line, path)
    assert message in error.message


def test_error_of_a_mapping_has_a_path_and_no_line() -> None:
    error = failure(volcano, {"actions": "allocate", "tiers": [{"plugins": [{}]}]})
    assert error.line is None
    assert str(error) == "conf: tiers[0].plugins[0]: a plugin needs a name"
