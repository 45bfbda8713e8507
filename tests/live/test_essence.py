"""What is kept of an object: nothing that no decision reads, and nothing that may be secret."""

from maniple.live.essence import LAST_APPLIED, slim
from maniple.objects.core import ConfigMap
from maniple.objects.load import load
from tests.live.objects import pod


def test_what_kubectl_apply_notes_is_dropped() -> None:
    raw = pod(
        "one",
        **{LAST_APPLIED: '{"spec":{"containers":[{"env":[{"name":"KEY","value":"secret"}]}]}}', "kept": "x"},
    )
    assert slim(load(raw)).metadata.annotations == {"kept": "x"}


def test_of_config_maps_only_the_description_of_devices_is_kept() -> None:
    raw = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "team"},
        "data": {"password": "secret", "device-config.yaml": "nvidia: {}"},
    }
    item = slim(load(raw))
    assert isinstance(item, ConfigMap)
    assert item.data == {"device-config.yaml": "nvidia: {}"}
