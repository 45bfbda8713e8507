"""A recorded cluster without the names of its users: namespaces, objects, labels' values and images get pseudonyms.

Equal names get equal pseudonyms, and pseudonyms sort as the names do: ties break by name, so the plan of the
pseudonymised cluster is that of the original with the names replaced. What Kubernetes or a scheduler gives a meaning
(well-known namespaces, the default queue, device classes, numbers, labels of device plugins) stays as it is. Messages
and annotations that no scheduler reads are taken out.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from maniple.cluster.patterns import compile_pattern
from maniple.objects.limits import WAITS
from maniple.objects.lists import SETTINGS
from maniple.objects.load import struct_of
from maniple.objects.owners import OWNERS

Document = dict[str, Any]

_KEPT = frozenset(
    (
        *("default", "root", "default-parent-queue", "*", "true", "false"),
        *("kube-system", "kube-public", "kube-node-lease"),
        *("system-cluster-critical", "system-node-critical", "train", "build", "inference"),
        *("volcano", "kai-scheduler", "maniple", "default-scheduler"),
    )
)
_NUMBER = re.compile(r"[-+]?[0-9][0-9.]*[a-zA-Z]{0,2}")
# Whose labels and annotations a scheduler or a device plugin reads.
_KNOWN_DOMAIN = re.compile(
    r"(^|\.)(kubernetes\.io|k8s\.io|volcano\.sh|kai\.scheduler|run\.ai|maniple\.dev|nvidia\.com|amd\.com|intel\.com|"
    r"huawei\.com|hami\.io)$"
)
_NAMES_IN_KNOWN_LABELS = frozenset(
    (
        "kubernetes.io/hostname",
        "kubernetes.io/metadata.name",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
    )
)
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Fields that hold the name of an object, besides `metadata`.
_NAME_FIELDS = frozenset(
    (
        *(
            "nodeName",
            "nominatedNodeName",
            "queue",
            "parentQueue",
            "claimName",
            "volumeName",
            "storageClassName",
        ),
        *(
            "priorityClassName",
            "podName",
            "resourceClaimName",
            "resourceClaimTemplateName",
            "selectedNode",
            "pool",
        ),
        *("runtimeClassName", "serviceName", "parent"),
    )
)
_REFERENCES = frozenset(
    (
        "ownerReferences",
        "claimRef",
        "reservedFor",
        "exactMatch",
        "configMapRef",
        "configMapKeyRef",
        "configMap",
    )
)
_LABELS = frozenset(("labels", "matchLabels", "nodeSelector"))
# Fields with words of Kubernetes, or keys: never a name.
_WORDS = frozenset(
    (
        *(
            "apiVersion",
            "kind",
            "apiGroup",
            "phase",
            "type",
            "status",
            "reason",
            "operator",
            "effect",
            "key",
            "topologyKey",
        ),
        *(
            "restartPolicy",
            "preemptionPolicy",
            "protocol",
            "driver",
            "provisioner",
            "schedulerName",
            "whenUnsatisfiable",
        ),
        *("volumeBindingMode", "mode", "policy", "resource", "resourceName", "expression"),
    )
)
_BY_NAME = frozenset(("minTaskMember", "queueUsage", "nodeUsage", "domains"))  # mappings whose keys are names


class Pseudonyms:
    """The pseudonyms of a document, as `Moment.to_list` gives it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._namespaces: set[str] = set()
        self._names: set[str] = set()
        self._uids: set[str] = set()
        self._images: set[str] = set()
        for item in document["items"]:
            self._collect(item, "")
        # A scheduler counts devices of a class as GPUs by the name of the class.
        classes = {item["metadata"]["name"] for item in document["items"] if item["kind"] == "DeviceClass"}
        self._pseudonyms = _ordered(self._names | self._namespaces, _KEPT | classes, self._sort_key)
        uids = sorted(self._uids)
        self._pseudonyms |= {
            uid: f"{rank:08x}-0000-4000-8000-000000000000" for rank, uid in enumerate(uids, 1)
        }
        self._images_renamed = {
            image: f"registry.example/image-{rank:06}" for rank, image in enumerate(sorted(self._images), 1)
        }

    def of(self, name: str) -> str:
        """A name, or names joined by `/`, as the pseudonymised document has it."""
        if name in self._pseudonyms:
            return self._pseudonyms[name]
        return "/".join(self._pseudonyms.get(part, part) for part in name.split("/"))

    def applied(self, document: Mapping[str, Any]) -> Document:
        """The document with pseudonyms."""
        nodes = [item["metadata"]["name"] for item in document["items"] if item["kind"] == "Node"]
        items = [
            _without_patterns(item, nodes) if item["kind"] == "HyperNode" else item
            for item in document["items"]
            # Owners may say anything in their specs; the groups that they ask for are there.
            if struct_of(item) not in OWNERS
        ]
        renamed: Document = {**document, "items": [self._renamed(item, "") for item in items]}
        renamed[SETTINGS] = self._renamed(document[SETTINGS], "")
        return renamed

    def _sort_key(self, name: str) -> str:
        # Keys of objects are compared as namespace/name: "team-a/" comes before "team/".
        return f"{name}/" if name in self._namespaces else name

    # -- what is a name ------------------------------------------------------------------------------------------------

    def _collect(self, value: Any, under: str) -> None:
        if isinstance(value, Mapping):
            for key, one in value.items():
                self._collect_field(key, one, under)
        elif isinstance(value, list | tuple):
            for one in value:
                if isinstance(one, str) and under == "values":
                    self._names.add(one)
                else:
                    self._collect(one, under)

    def _collect_field(self, key: str, value: Any, under: str) -> None:
        if not isinstance(value, str):
            self._collect(value, key)
        elif key == "uid":
            self._uids.add(value)
        elif key == "namespace":
            self._namespaces.add(value)
        elif key == "image":
            self._images.add(value)
        elif (
            (key == "name" and (under == "metadata" or under in _REFERENCES))
            or key in _NAME_FIELDS
            or (under in _LABELS and _is_private(key))
            or (under in ("taints", "tolerations") and key == "value")
        ):
            self._names.add(value)
        elif under == "annotations" and _is_private(key) and "-name" in key:
            self._names.add(value)  # of groups and queues

    # -- replacing -----------------------------------------------------------------------------------------------------

    def _renamed(self, value: Any, under: str) -> Any:
        if isinstance(value, Mapping):
            if under == "annotations":
                value = {key: one for key, one in value.items() if _is_read(key)}
            return {
                (self.of(key) if under in _BY_NAME else key): self._renamed_field(key, one, under)
                for key, one in value.items()
                if not (key == "message" and "lastTransitionTime" in value)
            }
        if isinstance(value, list | tuple):
            if under == "names":  # of an image
                return [self._images_renamed.get(one, one) for one in value]
            return [
                self._renamed(one, under) if not isinstance(one, str) else self._word(one) for one in value
            ]
        return value

    def _renamed_field(self, key: str, value: Any, under: str) -> Any:
        if not isinstance(value, str):
            return self._renamed(value, key)
        if key == "image":
            return self._images_renamed[value]
        if key == WAITS:
            return "waits for what its owner says"
        if key in _WORDS and under not in (*_LABELS, "annotations"):
            return value
        if value[:1] in ("{", "[") and under == "annotations":
            return self._inside(value)
        return self._word(value)

    def _word(self, text: str) -> str:
        return ",".join(self.of(part) for part in text.split(","))

    def _inside(self, text: str) -> str:
        """JSON in an annotation."""
        try:
            inner = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
        return msgspec.json.encode(self._renamed(inner, "")).decode()


def pseudonymised(document: Mapping[str, Any]) -> Document:
    """A document of `Moment.to_list` with pseudonyms for names."""
    return Pseudonyms(document).applied(document)


def _is_private(key: str) -> bool:
    """Whether the value of a label may say something about its users."""
    if key in _NAMES_IN_KNOWN_LABELS or "queue" in key or "group" in key:
        return True
    domain, slash, _ = key.rpartition("/")
    return not slash or _KNOWN_DOMAIN.search(domain) is None


def _is_read(key: str) -> bool:
    """Whether a scheduler may read an annotation."""
    domain, slash, _ = key.rpartition("/")
    return key != _APPLIED and (not slash or _KNOWN_DOMAIN.search(domain) is not None)


def _ordered(names: set[str], stay: frozenset[str], sort_key: Callable[[str], str]) -> dict[str, str]:
    """Pseudonyms that sort as the names do, also among the names that stay."""

    def stays(name: str) -> bool:
        return not name or name in stay or _NUMBER.fullmatch(name) is not None

    kept = sorted(filter(stays, names), key=sort_key)
    keys = [sort_key(name) for name in kept]
    others = sorted((name for name in names if not stays(name)), key=sort_key)
    found, counts = {}, dict[str, int]()
    for name in others:
        place = bisect_right(keys, sort_key(name))
        before = _between(kept[place - 1] if place else "", kept[place] if place < len(kept) else "")
        counts[before] = counts.get(before, 0) + 1
        found[name] = f"{before}{counts[before]:07}"
    return found


def _between(lower: str, upper: str) -> str:
    """What pseudonyms begin with that sort between two names; a digit follows, which comes after "/"."""
    letter = chr(ord(lower[0]) + 1) if lower else "a"
    if letter.isascii() and letter.islower() and (not upper or letter < upper[0]):
        return letter
    return f"{lower}0" if lower else ""


def _without_patterns(hyper_node: Mapping[str, Any], nodes: list[str]) -> Document:
    """A HyperNode with its members by name instead of by pattern."""
    spec = hyper_node.get("spec", {})
    members = [one for member in spec.get("members", ()) for one in _members(member, nodes)]
    return {**hyper_node, "spec": {**spec, "members": members}}


def _members(member: Mapping[str, Any], nodes: list[str]) -> Iterator[Mapping[str, Any]]:
    pattern = member.get("selector", {}).get("regexMatch", {}).get("pattern")
    if pattern is None:
        yield member
        return
    try:
        matches = compile_pattern(pattern)
    except ValueError:
        return
    for name in nodes:
        if matches(name):
            yield {**member, "selector": {"exactMatch": {"name": name}}}
