"""The commands lend the planner a way out when the configuration names the extender plugin, and only then."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from maniple.cli import with_transport
from maniple.cli.main import main
from maniple.kube.extender import HttpTransport
from tests.cli.test_plan_command import group, node, pod, queue

CONF = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: extender
    arguments:
      extender.urlPrefix: http://127.0.0.1:1
      extender.predicateVerb: predicate
      extender.ignorable: {ignorable}
"""


@pytest.mark.parametrize("conf", [None, "", "actions: allocate"])
def test_nothing_is_lent_unasked(conf: str | None) -> None:
    assert with_transport(None, conf) is None
    assert with_transport({"debug": True}, conf) == {"debug": True}


def test_a_transport_of_the_caller_s_own_comes_first() -> None:
    lent = with_transport(None, CONF)
    assert lent is not None
    assert isinstance(lent["extenderTransport"], HttpTransport)
    own = {"extenderTransport": print, "debug": True}
    assert with_transport(own, CONF) == own


@pytest.mark.parametrize(("ignorable", "bound"), [("true", True), ("false", False)])
def test_a_plan_asks_the_extender(tmp_path: Path, ignorable: str, bound: bool) -> None:
    """Nobody listens at that address."""
    objects, conf = tmp_path / "objects.yaml", tmp_path / "volcano-scheduler.conf"
    objects.write_text(yaml.safe_dump_all([node("n1"), queue(), group("g", 1), pod("p", "g", "1")]))
    conf.write_text(CONF.format(ignorable=ignorable))
    result = CliRunner().invoke(
        main, ["plan", "--profile", "volcano", str(objects), "--conf", str(conf), "-o", "json"]
    )
    assert result.exit_code == 0
    assert ('"ml/p": "n1"' in result.stdout) is bound
    assert "warning: extender: predicate: no answer from http://127.0.0.1:1/predicate" in result.stderr
