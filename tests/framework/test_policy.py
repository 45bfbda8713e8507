"""The key `policy` of a configuration file: the options that say what tenants may name."""

import pytest

from maniple.framework.configuration.compare import differences
from maniple.framework.configuration.loading import ConfigurationError
from maniple.planner import Planner

PROFILES = pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
START = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: predicates\npolicy:\n'
FILE = f"""{START}  queueAccess: closed
  priorityClasses: [low, normal]
  systemPriorities: kube-system
  affinityAcrossNamespaces: own
"""


@PROFILES
def test_a_file_may_carry_the_options(profile: str) -> None:
    planner = Planner(FILE, profile=profile)
    assert planner.options["queueAccess"] == "closed"
    assert planner.options["priorityClasses"] == ["low", "normal"]
    assert planner.options["systemPriorities"] == "kube-system"
    assert planner.options["affinityAcrossNamespaces"] == "own"


@PROFILES
def test_what_is_given_as_an_option_comes_first(profile: str) -> None:
    planner = Planner(FILE, profile=profile, options={"queueAccess": "open"})
    assert planner.options["queueAccess"] == "open"
    assert planner.options["systemPriorities"] == "kube-system"


@PROFILES
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("queueAccess: shut", "policy.queueAccess: must be one of open, closed"),
        ("queueAcess: closed", "policy.queueAcess: unknown field; expected one of affinityAcrossNamespaces"),
        ("priorityClasses: low", "policy.priorityClasses must be a list"),
        ("priorityClasses: [1]", "a name in policy.priorityClasses must be text"),
    ],
)
def test_a_mistake_is_an_error_that_names_the_line(profile: str, line: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        Planner(f"{START}  {line}\n", profile=profile)
    assert message in str(error.value)
    assert error.value.line == 6


@PROFILES
def test_a_change_is_a_difference(profile: str) -> None:
    before = Planner(FILE, profile=profile).configuration
    after = Planner(FILE.replace("closed", "open"), profile=profile).configuration
    assert differences(before, after) == ["policy: queueAccess: closed → open"]
