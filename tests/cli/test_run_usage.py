"""`maniple run` with a usage database: a fake Prometheus server is queried, and shares follow from it."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner

from maniple.cli.main import main
from tests.kube.prometheus import vector
from tests.live.kai_objects import gang, node, queue

COMMAND = "import sys; from maniple.cli.main import main; main(sys.argv[1:])"


async def half_was_a_s(request: web.Request) -> web.StreamResponse:
    """There were eight of everything; queue a had four of each."""
    text = str((await request.post())["query"])
    return web.json_response(vector(({}, "480") if "capacity" in text else ({"queue_name": "a"}, "240")))


async def out_of_order(request: web.Request) -> web.StreamResponse:
    return web.Response(status=503, text="<html>")


def written(folder: Path, address: str, **parameters: str) -> list[str]:
    """Two queues with equal rights that want eight GPUs each, of which there are eight; and the configuration."""
    works = [raw for name in "ab" for number in range(8) for raw in gang(f"{name}{number}", 1, queue=name)]
    objects = folder / "objects.json"
    objects.write_text(
        json.dumps([node("n1", 8), queue("all"), queue("a", "all"), queue("b", "all"), *works])
    )
    usage = {"clientType": "prometheus", "connectionString": address, "usageParams": parameters}
    conf = folder / "conf.yaml"
    conf.write_text(json.dumps({"usageDBConfig": usage}))
    return ["run", "--profile", "kai", "-f", str(objects), "--conf", str(conf)]


def told(folder: Path, handler: Any, **parameters: str) -> str:
    """The output of the command while a server responds, in a process of its own, in real time, until it
    settles."""

    async def go() -> str:
        application = web.Application()
        application.router.add_post("/api/v1/query", handler)
        async with TestServer(application) as server:
            arguments = written(folder, str(server.make_url("/")), **parameters)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", COMMAND, *arguments, "--until-done"),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            try:
                async with asyncio.timeout(120):
                    output, _ = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
            assert process.returncode == 1, output.decode()  # half of the pods wait
            return output.decode()

    return asyncio.run(go())


def bound(output: str) -> dict[str, int]:
    return {name: len(re.findall(rf"team/{name}\d +1 of 1 bound", output)) for name in "ab"}


def test_a_queue_that_used_much_gets_less_of_what_is_over(tmp_path: Path) -> None:
    assert bound(told(tmp_path, half_was_a_s)) == {"a": 3, "b": 5}


def test_a_database_that_is_out_of_order_is_reported_and_work_goes_on(tmp_path: Path) -> None:
    output = told(tmp_path, out_of_order, waitTimeout="50ms", fetchInterval="100ms")
    assert bound(output) == {"a": 4, "b": 4}
    assert output.count("queue usage cannot be fetched: ") == 1
    assert output.count("continuing without") == 1


def test_in_virtual_time_usage_is_not_queried_with_a_warning(tmp_path: Path) -> None:
    arguments = written(tmp_path, "http://127.0.0.1:1")
    result = CliRunner().invoke(main, [*arguments, "--virtual-time", "--until-done"])
    assert bound(result.output) == {"a": 4, "b": 4}
    assert "nothing is fetched in virtual time" in result.output


@pytest.mark.parametrize(
    ("address", "parameters", "message"),
    [
        ("prometheus:9090", {}, "usageDBConfig.connectionString"),
        ("http://there", {"waitTimeout": "soon"}, "usageDBConfig.usageParams.waitTimeout"),
    ],
)
def test_a_database_that_cannot_be_understood_is_named(
    tmp_path: Path, address: str, parameters: dict[str, str], message: str
) -> None:
    result = CliRunner().invoke(main, written(tmp_path, address, **parameters))
    assert result.exit_code == 2
    assert message in result.output
