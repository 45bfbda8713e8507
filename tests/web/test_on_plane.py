"""`maniple run` on a real API server: authorized by it, with exactly the shipped roles, and no token in its log."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from plane.plane import Plane
from tests.live.objects import gang, node
from tests.live.scenarios import runs
from tests.live.test_permissions import PATHS, ROLE, running, token_of_the_role
from tests.live.worlds import real_world, until
from tests.live_support import CleanPlane
from tests.plane.api import Api

ROLES = Path(__file__).parents[2] / "examples" / "rbac-metrics.yaml"
READER = {"kind": "ServiceAccount", "name": "prometheus", "namespace": "maniple-system"}


def reader_of_metrics(plane: Plane) -> str:
    """The token of a service account that may read the metrics and nothing else."""
    api = Api(plane)
    for item in yaml.safe_load_all(ROLES.read_text(encoding="utf-8")):
        api.create(PATHS[item["kind"]], item)
    role = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "maniple:maniple-system:metrics-reader",
    }
    binding = {"metadata": {"name": "reads-metrics"}, "roleRef": role, "subjects": [READER]}
    api.create(PATHS["ClusterRoleBinding"], binding)
    account = {"metadata": {"name": "prometheus", "namespace": "maniple-system"}}
    api.create(PATHS["ServiceAccount"], account)
    answer = api.create(f"{PATHS['ServiceAccount']}/prometheus/token", {"spec": {}})
    return str(answer["status"]["token"])


def test_the_api_server_authorizes_and_no_token_is_logged(clean_plane: CleanPlane, tmp_path: Path) -> None:
    plane = clean_plane("volcano")
    token = token_of_the_role(plane, ROLE, "create-queues")
    reader = reader_of_metrics(plane)
    kubeconfig = plane.write_kubeconfig(tmp_path / "kubeconfig", "maniple", token)
    arguments = ["run", "--profile", "volcano", "--kubeconfig", str(kubeconfig), "--listen", "127.0.0.1:0"]
    arguments += ["--listen-authorization", "--debug-endpoints", "--log-format", "json", "-v", "10"]
    code = f"from maniple.cli.main import main; main({arguments!r})"
    log = tmp_path / "output"

    async def statuses(url: str, path: str) -> list[int]:
        found = []
        async with aiohttp.ClientSession() as session:
            for given in ("", "Bearer nonsense", f"Bearer {token}", f"Bearer {reader}"):
                async with session.get(url + path, headers={"Authorization": given}) as response:
                    found.append(response.status)
        return found

    async def main() -> dict[str, Any]:
        found: dict[str, Any] = {}
        async with real_world(plane) as world:
            with log.open("w") as output, running([sys.executable, "-c", code], output):
                await world.create([node("n1"), *gang("train", 8)])
                await until(lambda: runs(world, "train", 8), "the gang runs")
                match = re.search(r"listening on (http://[0-9.:]+)", log.read_text())
                assert match is not None, log.read_text()
                for path in ("/readyz", "/metrics", "/debug/cache"):
                    found[path] = await statuses(match[1], path)
                async with aiohttp.ClientSession() as session:
                    url, headers = match[1] + "/metrics", {"Authorization": f"Bearer {reader}"}
                    async with session.get(url, headers=headers) as response:
                        found["page"] = await response.text()
        return found

    found = asyncio.run(main())
    assert found["/readyz"] == [200, 200, 200, 200]
    assert found["/metrics"] == [401, 401, 403, 200]
    assert found["/debug/cache"] == [401, 401, 403, 403]
    binds = 'maniple_api_requests_total{verb="POST",resource="pods/binding",code="201"} 8.0'
    assert binds in found["page"]
    assert 'maniple_writes_total{write="bind",result="ok"} 8.0' in found["page"]
    assert 'maniple_watch_silence_seconds{resource="pods"}' in found["page"]
    output = log.read_text()
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert any("train-0: bound to node n1" in line["message"] for line in lines)
    for secret in (token, reader, token.split(".")[2], reader.split(".")[2], "Bearer"):
        assert secret not in output
