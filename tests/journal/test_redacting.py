"""No passwords in a journal, and the same configuration without them."""

from maniple.journal.redacting import redacted
from maniple.planner import Planner

VOLCANO = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
metrics:
  type: elasticsearch
  address: https://user:hunter2@elastic:9200
  elasticsearch.password: hunter2
"""
KAI = """
actions: allocate
usageDBConfig:
  clientType: prometheus
  connectionString: http://someone:hunter2@prometheus:9090
"""


def test_what_has_no_secrets_stays_as_it_is() -> None:
    text = "actions: allocate\ntiers: []\n"
    assert redacted(text) == text
    assert redacted(None) is None


def test_passwords_are_taken_out_and_the_rest_means_the_same() -> None:
    for profile, text in (("volcano", VOLCANO), ("kai", KAI)):
        clean = redacted(text)
        assert "hunter2" not in str(clean)
        before, after = Planner(text, profile).configuration, Planner(clean, profile).configuration
        assert (before.actions, before.queue_depth) == (after.actions, after.queue_depth)
        assert [[one.name for one in tier] for tier in before.tiers] == [
            [one.name for one in tier] for tier in after.tiers
        ]


def test_also_inside_a_config_map() -> None:
    clean = redacted({"kind": "ConfigMap", "data": {"volcano-scheduler.conf": VOLCANO}})
    assert "hunter2" not in str(clean)
    assert Planner(clean, "volcano").actions == ("enqueue", "allocate")
