"""However the objects are damaged, `plan` and `run` end, without a traceback: what is wrong costs only itself.

Every object of a small cluster that works, and a sample of every kind, has one field damaged at a time: null, a
text, numbers that are negative or huge, a list, a mapping, or gone. A round damages all objects at once, each in
another place, since a refused object is independent of the others.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import maniple
from maniple.cli.main import main
from tests.cli import kai_cluster
from tests.live import need_objects as needs
from tests.live.objects import gang, node, pod, queue
from tests.objects.samples import SAMPLES

Raw = dict[str, Any]
GONE = object()
DAMAGES: list[Any] = [None, "text", "", -1, 10**30, 1.5, [], ["x"], [None], {}, {"a": "b"}, True, GONE]
PROFILES = ("volcano", "kai", "maniple")
STRIDE = 97  # a prime, so that rounds spread over fields and damages alike


def scene(scheduler: str) -> list[Raw]:
    """A cluster in which everything runs and ends: gangs, single pods, volumes, devices."""
    mounted = needs.mounting(pod("mounts", ""), "data")
    claimed = needs.claiming(pod("claims", ""))
    scratch = pod("scratch", "")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": needs.claim("x", needs.MADE)["spec"]}
    scratch["spec"]["volumes"] = [{"name": "s", "ephemeral": {"volumeClaimTemplate": template}}]
    bound = needs.claim("bound", "now")
    now: Raw = {
        **needs.storage_class(needs.MADE),
        "metadata": {"name": "now"},
        "volumeBindingMode": "Immediate",
    }
    devices = {"spec": needs.resource_claim("x")["spec"]}
    made: list[Raw] = [
        needs.storage_class(needs.MADE),
        needs.csi_node("n0"),
        now,
        bound,
        needs.claim("data", needs.MADE),
        needs.volume("disk", "n0"),
        needs.device_class(),
        needs.devices("n0", 4),
        needs.resource_claim("shared"),
        {**needs.resource_claim("gpus"), "kind": "ResourceClaimTemplate", "spec": devices},
        needs.mounting(pod("mounts-now", ""), "bound"),
    ]
    several = pod("several", "", **{"maniple.dev/replicas": "2", "maniple.dev/arrive-after": "5s"})
    objects = [
        node("n0", 64),
        queue("default"),
        kai_cluster.queue("default-queue"),
        *made,
        mounted,
        claimed,
        scratch,
        several,
        *gang("train", 2),
    ]
    objects += [*kai_cluster.TWO_NODES, *kai_cluster.gang("learn", 2, 1)]
    for raw in objects:
        if raw["kind"] == "Pod":
            raw["spec"]["schedulerName"] = scheduler
            raw["metadata"]["annotations"]["maniple.dev/run-for"] = "1m"
    return json.loads(json.dumps(objects))  # type: ignore[no-any-return]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (*path, key)
        yield from places(value[key], (*path, key))


def damaged(raw: Raw, number: int) -> Raw:
    """The object with its damage of that number, counted around."""
    spots = [path for path in places(raw) if path not in (("kind",), ("apiVersion",))]
    path, damage = spots[number % len(spots)], DAMAGES[number // len(spots) % len(DAMAGES)]
    made = copy.deepcopy(raw)
    part: Any = made
    for key in path[:-1]:
        part = part[key]
    if damage is GONE:
        del part[path[-1]]
    else:
        part[path[-1]] = copy.deepcopy(damage)
    return made


def objects_of(profile: str, number: int) -> list[Raw]:
    scheduler = {"kai": "kai-scheduler"}.get(profile, profile)
    whole, samples = scene(scheduler), SAMPLES
    # Half of the rounds leave the scene whole, so that damaged objects meet some that work.
    damages = [damaged(raw, number * STRIDE) for raw in samples]
    return [*(whole if number % 2 else [damaged(raw, number * STRIDE) for raw in whole]), *damages]


def rounds(profile: str, numbers: range, folder: Path) -> None:
    for number in numbers:
        objects = objects_of(profile, number)
        maniple.plan(objects, profile=profile)
        path = folder / f"{profile}-{number}.json"
        path.write_text(json.dumps(objects))
        for command in (["plan", str(path)], ["run", "-f", str(path), "--virtual-time"]):
            result = CliRunner().invoke(main, [*command, "--profile", profile])
            assert isinstance(result.exception, SystemExit | None), (command, result.exc_info)
            assert "Traceback" not in result.output, (command, result.output)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_scene_itself_runs_to_its_end(tmp_path: Path, profile: str) -> None:
    scheduler = {"kai": "kai-scheduler"}.get(profile, profile)
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(scene(scheduler)))
    result = CliRunner().invoke(main, ["run", "-f", str(path), "--virtual-time", "--profile", profile])
    assert "succeeded" in result.output


@pytest.mark.parametrize("profile", PROFILES)
def test_damaged_objects_cost_only_themselves(tmp_path: Path, profile: str) -> None:
    rounds(profile, range(8), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("profile", PROFILES)
def test_damage_everywhere(tmp_path: Path, profile: str) -> None:
    """Every profile meets other damages: what reads objects is the same in all of them."""
    rounds(profile, range(8 + PROFILES.index(profile), 200, len(PROFILES)), tmp_path)
