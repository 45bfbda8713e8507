"""Every query of the dashboard returns data from a real Prometheus that scrapes a scheduler at work."""

import asyncio
import json
import math
import re
import sys
from pathlib import Path

from plane.control import free_port
from tests.install.chart import ROOT, rendered
from tests.install.dashboard import DASHBOARD, dashboard, filled_in, queries
from tests.install.prometheus import Server, scraping
from tests.live.maniple_scenarios import HIGH, OPTIONS, QUEUE
from tests.live.objects import Raw, gang, node, queue
from tests.live.scenarios import runs
from tests.live.test_permissions import running
from tests.live.worlds import real_world, until
from tests.live_support import ALL, CleanPlane

GPU = "nvidia.com/gpu"


def with_gpus(items: list[Raw], priority: str = "") -> list[Raw]:
    """A gang whose pods take a GPU each, in the queue that has a limit."""
    for item in items:
        if item["kind"] == "Pod":
            item["spec"]["containers"][0]["resources"]["limits"] = {GPU: "1"}
        else:
            item["spec"] |= {"queue": QUEUE, **({"priorityClassName": priority} if priority else {})}
    return items


def gpu_node(name: str) -> Raw:
    made = node(name, 16)
    made["status"]["allocatable"][GPU] = made["status"]["capacity"][GPU] = "8"
    return made


def without_data(server: Server) -> list[str]:
    """The queries that return nothing, or nothing that is a number."""
    found = []
    for where, expression in queries().items():
        values = [float(one["value"][1]) for one in server.query(filled_in(expression, GPU))]
        if all(math.isnan(value) for value in values):
            found.append(f"{where}: {expression}")
    return found


def test_every_query_returns_data(clean_plane: CleanPlane, prometheus: Path, tmp_path: Path) -> None:
    plane, port, log = clean_plane(ALL), free_port(), tmp_path / "output"
    words = ["run", f"--kubeconfig={plane.kubeconfig}", f"--listen=127.0.0.1:{port}"]
    words += [f"--scheduler-name={name}" for name in OPTIONS["schedulerName"]]
    code = f"from maniple.cli.main import main; main({words!r})"
    job = {"job_name": "maniple", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}

    async def work(server: Server) -> None:
        async with real_world(plane, "") as world:
            limit = {"capability": {"cpu": "100", GPU: "16"}}
            await world.create([HIGH, queue(QUEUE, **limit), gpu_node("n1"), *with_gpus(gang("first", 2))])
            await until(lambda: runs(world, "first", 2), "the first gang runs")
            # A rate takes two samples: what happened once is repeated while it is looked at.
            for number in range(4):
                await world.create(with_gpus(gang(f"small-{number}", 1)))
                await asyncio.sleep(2)
            await world.create(with_gpus(gang("large", 9)))
            await world.create(with_gpus(gang("urgent", 4), "high"))
            await until(lambda: runs(world, "urgent", 4), "room is made for a higher gang")
            for number in range(90):
                missing = await asyncio.to_thread(without_data, server)
                if not missing:
                    return
                await world.create(with_gpus(gang(f"again-{number}", 1), "high"))
                await asyncio.sleep(2)
            raise AssertionError("\n".join(missing))

    with (
        log.open("w") as output,
        running([sys.executable, "-c", code], output),
        scraping(prometheus, tmp_path / "prometheus", job) as server,
    ):
        try:
            asyncio.run(work(server))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{log.read_text()}") from error


def test_every_metric_of_a_query_is_on_the_page() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for expression in queries().values():
        for name in re.findall(r"maniple_\w+", expression):
            family = re.sub("_(bucket|sum|count)$", "", name)
            assert f"`{family}`" in page, name


def test_the_panels_have_a_title_each_and_do_not_overlap() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert panel["title"]
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_the_config_map_has_the_dashboard_and_the_label_of_the_sidecar(helm: Path) -> None:
    items = rendered(helm, {"dashboard": {"enabled": True}})
    (item,) = [one for one in items if one["metadata"]["name"] == "maniple-dashboard"]
    assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(item["data"]["maniple.json"]) == json.loads(DASHBOARD.read_text(encoding="utf-8"))
