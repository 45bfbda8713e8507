"""Applying manifests to a real API server as `kubectl apply --server-side` does, with strict validation."""

from typing import Any
from urllib.parse import urlencode

from tests.plane.api import Answer, Api

Raw = dict[str, Any]


class Applying:
    """Objects of any kind that the server has; it is asked where each kind is."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._places: dict[tuple[str, str], tuple[str, bool]] = {}

    def path(self, item: Raw) -> str:
        base, namespaced = self._place(item["apiVersion"], item["kind"])
        plural = base.rpartition("/")[2]
        root = base.removesuffix(f"/{plural}")
        metadata = item["metadata"]
        inner = f"/namespaces/{metadata['namespace']}" if namespaced else ""
        return f"{root}{inner}/{plural}/{metadata['name']}"

    def apply(self, item: Raw, *, dry_run: bool = False) -> Answer:
        given = {"fieldManager": "test", "force": "true", "fieldValidation": "Strict"}
        if dry_run:
            given["dryRun"] = "All"
        return self._api.call(
            "PATCH", f"{self.path(item)}?{urlencode(given)}", item, content="apply-patch+yaml"
        )

    def accepted(self, items: list[Raw]) -> None:
        """Dry, then really; the namespaces first, because nothing fits into one that is not there."""
        for item in sorted(items, key=lambda one: one["kind"] != "Namespace"):
            for dry_run in (True, False):
                answer = self.apply(item, dry_run=dry_run)
                assert answer.status in (200, 201), (item["kind"], item["metadata"]["name"], answer)

    def _place(self, version: str, kind: str) -> tuple[str, bool]:
        if (version, kind) not in self._places:
            root = f"/apis/{version}" if "/" in version else f"/api/{version}"
            for row in self._api.call("GET", root).content["resources"]:
                if "/" not in row["name"]:
                    self._places[version, row["kind"]] = (f"{root}/{row['name']}", row["namespaced"])
        return self._places[version, kind]
