"""The custom resource definitions: they fit the objects that we read, and installing them is careful."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from maniple.cli.main import main
from maniple.kube.client import Client
from maniple.kube.crds import DIALECTS, Installed, Manifest, install, manifests
from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS, Kind
from maniple.objects import kai, volcano
from maniple.objects.meta import Object
from tests.kube.fake_server import Answer, FakeServer, status

WANTED: dict[type[Object], str] = {
    volcano.VolcanoQueue: "volcano",
    volcano.VolcanoPodGroup: "volcano",
    volcano.HyperNode: "volcano",
    volcano.NodeShard: "volcano",
    kai.KaiQueue: "kai",
    kai.KaiPodGroup: "kai",
    kai.BindRequest: "kai",
    kai.Topology: "kai",
}


def manifest_of(kind: Kind) -> Manifest:
    (found,) = [manifest for manifest in manifests() if manifest.name == str(kind)]
    return found


def test_they_are_all_there() -> None:
    assert {manifest.name for manifest in manifests()} == {str(KINDS[struct]) for struct in WANTED}


@pytest.mark.parametrize("struct", WANTED, ids=lambda struct: struct.__name__)
def test_a_definition_says_what_the_table_says(struct: type[Object]) -> None:
    kind = KINDS[struct]
    manifest = manifest_of(kind)
    spec = manifest.body["spec"]
    (version,) = spec["versions"]
    assert manifest.dialect == WANTED[struct]
    assert (spec["group"], version["name"]) == (kind.group, kind.versions[0])
    assert (spec["names"]["plural"], spec["names"]["kind"]) == (kind.plural, struct.kind)
    assert spec["scope"] == ("Namespaced" if kind.namespaced else "Cluster")
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    if "status" in properties:
        assert ("status" in version.get("subresources", {})) == kind.status_subresource
    assert properties["spec"]["x-kubernetes-preserve-unknown-fields"] is True


def field_names(struct: Any) -> set[str]:
    return set(struct.__struct_encode_fields__)


@pytest.mark.parametrize("struct", WANTED, ids=lambda struct: struct.__name__)
def test_a_definition_names_every_field_that_we_read(struct: Any) -> None:
    (version,) = manifest_of(KINDS[struct]).body["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    for part in ("spec", "status"):
        if part in struct.__struct_fields__:
            default = struct.__struct_defaults__[
                struct.__struct_fields__.index(part) - len(struct.__struct_fields__)
            ]
            assert field_names(type(default)) <= set(properties[part]["properties"])


def test_the_command_prints_them_for_kubectl() -> None:
    result = CliRunner().invoke(main, ["crds"])
    assert result.exit_code == 0
    documents = [*yaml.safe_load_all(result.stdout)]
    assert [document["kind"] for document in documents] == ["CustomResourceDefinition"] * len(WANTED)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_command_prints_those_of_one_dialect(dialect: str) -> None:
    result = CliRunner().invoke(main, ["crds", "--only", dialect])
    names = {document["metadata"]["name"] for document in yaml.safe_load_all(result.stdout)}
    assert names == {str(KINDS[struct]) for struct, each in WANTED.items() if each == dialect}


def test_a_wrong_kubeconfig_is_bad_input(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere")
    result = CliRunner().invoke(main, ["crds", "--install", "--kubeconfig", missing])
    assert result.exit_code == 2
    assert result.stderr == f"Error: {missing}: No such file or directory\n"
    assert CliRunner().invoke(main, ["crds", "--kubeconfig", missing]).exit_code == 2


ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}


def answer(body: Any, code: int = 200) -> Answer:
    return Answer(code, json.dumps(body).encode())


def current(labels: Any, **fields: Any) -> Answer:
    return answer({"metadata": {"resourceVersion": "7", "labels": labels}, **fields})


async def installed(client: Client, **settings: bool) -> list[Installed]:
    return [each async for each in install(client, [manifest_of(KINDS[kai.KaiQueue])], **settings)]


NAME = "queues.scheduling.run.ai"
OURS = {"app.kubernetes.io/managed-by": "maniple"}


def test_a_definition_that_is_missing_is_created_and_waited_for() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers += [
                Answer(404, status(404, "NotFound")),
                answer({}, 201),
                answer({}),
                current(OURS, status=ESTABLISHED),
            ]
            assert await installed(client) == [Installed(NAME, "created")]
            assert [asked.method for asked in server.requests] == ["GET", "POST", "GET", "GET"]

    asyncio.run(scenario())


def test_our_own_is_updated_and_that_of_others_only_if_asked_for() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers += [current(OURS), answer({}), current(OURS, status=ESTABLISHED)]
            assert await installed(client) == [Installed(NAME, "updated")]
            assert server.asked("PUT")[0].json["metadata"]["resourceVersion"] == "7"

            server.answers.append(current(None))
            assert await installed(client) == [Installed(NAME, "kept")]
            assert len(server.asked("PUT")) == 1

            server.answers += [current({"x": "y"}), answer({}), current({}, status=ESTABLISHED)]
            assert await installed(client, replace=True) == [Installed(NAME, "updated")]

    asyncio.run(scenario())


def test_a_concurrent_write_is_not_overwritten() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            server.answers += [
                Answer(404, status(404, "NotFound")),
                Answer(409, status(409, "AlreadyExists")),
                current({}),
            ]
            assert await installed(client) == [Installed(NAME, "kept")]

    asyncio.run(scenario())


def test_a_definition_that_changes_meanwhile_is_looked_at_again() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            conflict = Answer(409, status(409, "Conflict"))
            server.answers += [
                current(OURS),
                conflict,
                current(OURS),
                answer({}),
                current(OURS, status=ESTABLISHED),
            ]
            assert await installed(client) == [Installed(NAME, "updated")]
            server.answers += [current(OURS), conflict] * 20
            with pytest.raises(ApiError, match="again and again"):
                await installed(client)

    asyncio.run(scenario())


def test_names_that_are_taken_are_an_error() -> None:
    async def scenario() -> None:
        async with FakeServer() as server, server.client() as client:
            taken = {"conditions": [{"type": "NamesAccepted", "status": "False", "message": "pg is taken"}]}
            server.answers += [current(OURS), answer({}), current(OURS, status=taken)]
            with pytest.raises(ApiError, match="pg is taken"):
                await installed(client)

    asyncio.run(scenario())
