"""A collection of bad inputs: what is wrong, in which object and field, and a word of the message that is due.

`OBJECTS` are edits of a small valid cluster (`base`), `TEXTS` whole files, `CONFIGURATIONS` files for --conf, `WORDS`
command lines, `SNAPSHOTS` edits of a KAI snapshot. The tests run all of them with every command and profile.
"""

import copy
from dataclasses import dataclass
from typing import Any

Raw = dict[str, Any]
BOTH, VOLCANO, KAI = ("volcano", "kai", "maniple"), ("volcano", "maniple"), ("kai", "maniple")
SCHEDULERS = {"volcano": "volcano", "kai": "kai-scheduler", "maniple": "maniple"}
GONE = "(gone)"  # the field is removed


@dataclass(frozen=True)
class Edit:
    """`where` is the object and the path of the field; `named` the field as messages write it."""

    where: str
    value: Any
    words: str
    profiles: tuple[str, ...] = BOTH
    named: str = ""

    @property
    def kind(self) -> str:
        return self.where.partition(" ")[0]

    @property
    def path(self) -> list[str]:
        return self.where.partition(" ")[2].split(" ")


def base(profile: str) -> dict[str, Raw]:
    """One valid object of each kind, by a short name; all of them make a cluster in which the pod is placed."""
    kai = profile == "kai"
    group = "pod-group-name" if kai else "scheduling.k8s.io/group-name"
    room = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"}
    free = {"quota": 0, "overQuotaWeight": 1, "limit": -1}
    system = "scheduling.run.ai" if kai else "scheduling.volcano.sh"
    return {
        "node": {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1", "labels": {"zone": "us-east-1", "kubernetes.io/hostname": "n1"}},
            "spec": {},
            "status": {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
        },
        "queue": {
            "apiVersion": f"{system}/{'v2' if kai else 'v1beta1'}",
            "kind": "Queue",
            "metadata": {"name": "research"},
            "spec": {"resources": {"gpu": free, "cpu": free, "memory": free}} if kai else {"weight": 1},
        },
        **({"department": _department(free)} if kai else {}),
        "group": {
            "apiVersion": f"{system}/{'v2alpha2' if kai else 'v1beta1'}",
            "kind": "PodGroup",
            "metadata": {"name": "train", "namespace": "ml"},
            "spec": {"minMember": 1, "queue": "research"},
        },
        "pod": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "train-0", "namespace": "ml", "annotations": {group: "train"}},
            "spec": {
                "schedulerName": SCHEDULERS[profile],
                "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
            },
        },
        "class": {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        },
        "storageclass": {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "fast"},
            "provisioner": "example.com/disk",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        "claim": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "ml"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "10Gi"}},
            },
        },
    }


def _department(free: Raw) -> Raw:
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "department"},
        "spec": {"resources": {"gpu": free, "cpu": free, "memory": free}},
    }


def edited(profile: str, edit: Edit) -> tuple[Raw, list[Raw]]:
    """The object with its mistake, and the rest of the cluster."""
    objects = copy.deepcopy(base(profile))
    if profile == "kai":
        objects["queue"]["spec"]["parentQueue"] = "department"
    spoilt: Any = objects.pop(edit.kind)
    *path, last = edit.path
    part = spoilt
    for step in path:
        part = part[int(step)] if isinstance(part, list) else part.setdefault(step, {})
    if edit.value is GONE:
        del part[last]
    elif isinstance(part, list):
        part[int(last)] = edit.value
    else:
        part[last] = edit.value
    return spoilt, list(objects.values())


REQUESTS = "pod spec containers 0 resources requests"
POD, META = "pod spec", "pod metadata"
QUOTA = "queue spec resources gpu"
TERM = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["us-eest-1"]}]}]
AFFINITY = "affinity nodeAffinity requiredDuringSchedulingIgnoredDuringExecution"

OBJECTS = [
    # -- quantities
    Edit(f"{REQUESTS} cpu", "two", "not a quantity"),
    Edit(f"{REQUESTS} cpu", "1,5", "did you mean 1.5"),
    Edit(f"{REQUESTS} cpu", "4 cores", "did you mean 4"),
    Edit(f"{REQUESTS} cpu", "-1", "must not be negative"),
    Edit(f"{REQUESTS} cpu", "", "not a quantity"),
    Edit(f"{REQUESTS} cpu", "1e", "not a quantity"),
    Edit(f"{REQUESTS} cpu", True, "bool"),
    Edit(f"{REQUESTS} cpu", ["1"], "array"),
    Edit(f"{REQUESTS} memory", "64GB", "did you mean 64G or 64Gi"),
    Edit(f"{REQUESTS} memory", "64gb", "did you mean 64G or 64Gi"),
    Edit(f"{REQUESTS} memory", "64GiB", "did you mean 64Gi"),
    Edit(f"{REQUESTS} memory", "64 Gi", "did you mean 64Gi"),
    Edit(f"{REQUESTS} memory", "512mb", "did you mean 512M or 512Mi"),
    Edit(f"{REQUESTS} memory", "512m", "fraction of a byte"),
    Edit(f"{REQUESTS} memory", "lots", "not a quantity"),
    Edit(f"{REQUESTS} nvidia.com/gpu", "0.5", "must be a whole number"),
    Edit(f"{REQUESTS} nvidia.com/gpu", 0.5, "gpu-fraction"),
    Edit(f"{REQUESTS} nvidia.com/gpu", "500m", "must be a whole number"),
    Edit(f"{REQUESTS} nvidia.com/gpu", "-1", "must not be negative"),
    Edit(f"{REQUESTS} nvidia.com/gpus", "1", 'did you mean "nvidia.com/gpu"'),
    Edit(f"{REQUESTS} nvidia.com/GPU", "1", 'did you mean "nvidia.com/gpu"'),
    Edit(f"{REQUESTS} nvdia.com/gpu", "1", 'did you mean "nvidia.com/gpu"'),
    Edit(f"{REQUESTS} gpu", "1", "no node has the resource"),
    Edit(f"{REQUESTS} cpus", "1", 'did you mean "cpu"'),
    Edit(f"{REQUESTS} memmory", "1Gi", 'did you mean "memory"'),
    Edit(
        "pod spec containers 0 resources limits", {"cpu": "500m"}, "more than the limit", named="requests.cpu"
    ),
    Edit("pod spec containers 0 resources limits", {"memory": "1GB"}, "not a quantity", named="memory"),
    Edit("pod spec containers 0 resources limits", "1", "Expected object"),
    Edit("pod spec containers 0 resources requests", ["cpu"], "Expected object"),
    Edit("pod spec overhead", {"cpu": "some"}, "not a quantity", named="overhead.cpu"),
    # -- fields of pods
    Edit("pod spec nodeselector", {"zone": "us-east-1"}, 'did you mean "nodeSelector"'),
    Edit("pod spec nodeSelecter", {"zone": "us-east-1"}, 'did you mean "nodeSelector"'),
    Edit("pod spec toleration", [], 'did you mean "tolerations"'),
    Edit("pod spec tolerration", [], 'did you mean "tolerations"'),
    Edit("pod spec afinity", {}, 'did you mean "affinity"'),
    Edit("pod spec priorityClass", "high", 'did you mean "priorityClassName"'),
    Edit("pod spec priorityclassname", "high", 'did you mean "priorityClassName"'),
    Edit("pod spec topologySpreadConstraint", [], 'did you mean "topologySpreadConstraints"'),
    Edit("pod spec schedulingGate", [], 'did you mean "schedulingGates"'),
    Edit("pod spec containers 0 resources request", {"cpu": "1"}, 'did you mean "requests"', named="request"),
    Edit("pod spec containers 0 resources limit", {"cpu": "1"}, 'did you mean "limits"'),
    Edit("pod spec containers 0 ressources", {}, 'did you mean "resources"', named=""),
    Edit("pod spec containers", [{"name": "m", "ressources": {"requests": {}}}], 'did you mean "resources"'),
    Edit("pod metadata lables", {"a": "b"}, 'did you mean "labels"'),
    Edit("pod metadata anotations", {"a": "b"}, 'did you mean "annotations"', named=""),
    Edit("pod metadata namesapce", "ml", 'did you mean "namespace"', named=""),
    Edit("pod spec", "words", "Expected object"),
    Edit("pod spec", [1], "Expected object"),
    Edit("pod spec containers", "main", "Expected array"),
    Edit("pod spec containers", [], "missing"),
    Edit("pod spec containers", GONE, "missing"),
    Edit("pod spec containers", [3], "Expected object"),
    Edit("pod spec containers 0", None, "Expected object", named="containers[0]"),
    Edit("pod metadata name", "", "must not be empty"),
    Edit("pod metadata name", 7, "Expected str"),
    Edit("pod metadata name", GONE, "missing"),
    Edit("pod metadata name", "two words", "must not contain spaces"),
    Edit("pod metadata name", "a/b", "must not contain a slash"),
    Edit("pod metadata name", "x" * 300, "at most 253"),
    Edit("pod metadata namespace", "a/b", "must not contain a slash"),
    Edit("pod metadata namespace", 5, "Expected str"),
    Edit("pod metadata labels", {"a": 1}, "Expected str", named="labels.a"),
    Edit("pod metadata annotations x", True, "Expected str", named="annotations.x"),
    Edit("pod metadata", "train", "Expected object"),
    Edit("pod metadata creationTimestamp", "yesterday", "RFC3339"),
    Edit("pod metadata creationTimestamp", "2026-01-01T00:00:00", "timezone"),
    Edit("pod spec priority", "high", "Expected int"),
    Edit("pod spec priority", 10**12, "Expected int"),
    Edit("pod spec preemptionPolicy", "never", 'did you mean "Never"'),
    Edit("pod spec tolerations", [{"operator": "Equals"}], "operator"),
    Edit("pod spec tolerations", [{"key": "a", "operator": "Exists", "value": "b"}], "tolerations[0]"),
    Edit("pod spec tolerations", [{"key": "a", "effect": "NoScheduling"}], "effect"),
    Edit(
        "pod spec topologySpreadConstraints",
        [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        "maxSkew",
    ),
    Edit("pod spec schedulingGates", "gate", "Expected array"),
    Edit("pod spec nodeSelector", ["zone"], "Expected object"),
    Edit("pod spec nodeSelector", {"zone": 1}, "Expected str"),
    Edit("pod status phase", "running", 'did you mean "Running"'),
    Edit("pod status phase", "Done", "unknown value"),
    Edit(
        "pod spec containers 0 ports",
        [{"hostPort": 70000, "containerPort": 1}],
        "must be between 0 and 65535",
    ),
    Edit("pod spec containers 0 ports", [{"containerPort": 1, "protocol": "TPC"}], "protocol"),
    # -- names that pods give
    Edit("pod spec nodeName", "n2", "there is no node"),
    Edit(
        "pod spec nodeSelector", {"zone": "us-eest-1"}, 'did you mean "us-east-1"', named="nodeSelector.zone"
    ),
    Edit("pod spec nodeSelector", {"zome": "us-east-1"}, 'did you mean "zone"', named="nodeSelector.zome"),
    Edit(f"{POD} {AFFINITY} nodeSelectorTerms", TERM, 'did you mean "us-east-1"'),
    Edit("pod spec priorityClassName", "hihg", 'did you mean "high"'),
    Edit("pod spec runtimeClassName", "gvisor", "is not in the input"),
    Edit("pod spec schedulerName", "volcanoo", 'did you mean "volcano"', named="schedulerName"),
    Edit("pod spec schedulerName", "kai-schedular", 'did you mean "kai-scheduler"', named="schedulerName"),
    Edit("pod spec schedulerName", "Maniple", 'did you mean "maniple"', named="schedulerName"),
    Edit(
        "pod spec volumes",
        [{"name": "v", "persistentVolumeClaim": {"claimName": "dta"}}],
        'did you mean "data"',
        named="claimName",
    ),
    Edit(
        "pod spec resourceClaims", [{"name": "g", "resourceClaimName": "gpu"}], "export resourceclaims, too"
    ),
    # -- annotations
    Edit("pod metadata annotations gpu-fraction", "1.5", "from 0.01 to 1", KAI),
    Edit("pod metadata annotations gpu-fraction", "half", "from 0.01 to 1"),
    Edit("pod metadata annotations gpu-fraction", "0.001", "from 0.01 to 1"),
    Edit("pod metadata annotations gpu-memory", "4Gi", "must be a whole number above 0"),
    Edit("pod metadata annotations gpu-fraction-num-devices", "two", "must be a whole number above 0"),
    Edit("pod metadata annotations gpu-fracton", "0.5", 'did you mean "gpu-fraction"'),
    Edit("pod metadata annotations maniple.dev/run-for", "abc", "must be a duration"),
    Edit("pod metadata annotations maniple.dev/fail-after", "3", "must be a duration"),
    Edit("pod metadata annotations maniple.dev/leave-after", "-3s", "must not be negative"),
    Edit("pod metadata annotations maniple.dev/replicas", "many", "must be a whole number from 1"),
    Edit("pod metadata annotations maniple.dev/replicas", "0", "must be a whole number from 1"),
    Edit("pod metadata annotations maniple.dev/runfor", "3s", 'did you mean "maniple.dev/run-for"'),
    Edit("pod metadata annotations volcano.sh/preemptable", "maybe", 'must be "true" or "false"'),
    Edit("pod metadata annotations volcano.sh/task-priority", "first", "must be a whole number"),
    Edit("pod metadata annotations volcano.sh/preemptible", "true", 'did you mean "volcano.sh/preemptable"'),
    Edit(
        "pod metadata labels", {"kai.scheduler/task-priority": "x"}, "must be a whole number", named="labels"
    ),
    Edit("group metadata annotations sla-waiting-time", "later", "duration"),
    Edit("group metadata annotations maniple.dev/arrive-after", "soon", "must be a duration"),
    # -- groups
    Edit("group spec minmember", 4, 'did you mean "minMember"', named=""),
    Edit("group spec", {"minmember": 4, "queue": "research"}, 'did you mean "minMember"', named="minmember"),
    Edit(
        "group spec", {"minMembers": 4, "queue": "research"}, 'did you mean "minMember"', named="minMembers"
    ),
    Edit("group spec", {"minMember": 1, "Queue": "research"}, 'did you mean "queue"', named="Queue"),
    Edit("group spec minMember", -1, ">= 0"),
    Edit("group spec minMember", "2", "Expected int"),
    Edit("group spec minMember", 1.5, "Expected int"),
    Edit("group spec minMember", 2**40, "Expected int"),
    Edit("group spec queue", "reserch", 'did you mean "research"'),
    Edit("group spec queue", "other", "there is no queue"),
    Edit("group spec queue", 3, "Expected str"),
    Edit("group spec priorityClassName", "hihg", 'did you mean "high"'),
    Edit("group spec priorityClassname", "high", 'did you mean "priorityClassName"'),
    Edit("group spec minResources", {"cpu": "-4"}, "must not be negative", VOLCANO, named="minResources.cpu"),
    Edit(
        "group spec minResources", {"memory": "4GB"}, "not a quantity", VOLCANO, named="minResources.memory"
    ),
    Edit("group spec minresources", {"cpu": "4"}, 'did you mean "minResources"', VOLCANO),
    Edit("group spec networkTopology", {"mode": "firm"}, "expected one of hard, soft", VOLCANO, named="mode"),
    Edit(
        "group spec networkTopology",
        {"highestTierallowed": 1},
        "highestTierAllowed",
        VOLCANO,
        named="networkTop",
    ),
    Edit("group spec minTaskMember", {"worker": -1}, ">= 0", VOLCANO),
    Edit("group spec preemptibility", "maybe", "expected one of preemptible", ("kai",)),
    Edit("group spec subGroups", [{"name": ""}], "must not be empty", ("kai",), named="subGroups[0].name"),
    Edit("group spec subGroups", [{"minMember": 1}], "missing", ("kai",), named="subGroups[0].name"),
    Edit("group spec subGroups", [{"name": "a"}, {"name": "a"}], "two sub-groups", ("kai",)),
    Edit("group spec subGroups", [{"name": "a", "parent": "b"}], "no sub-group", ("kai",), named="parent"),
    Edit("group spec topologyConstraint", {"topology": "rack"}, "is not in the input", ("kai",)),
    Edit("group spec", {"minMember": 1}, "missing", ("kai",), named="queue"),
    Edit("group metadata name", GONE, "missing"),
    Edit("group spec", [], "Expected object"),
    # -- queues
    Edit("queue spec weight", -1, ">= 0", VOLCANO),
    Edit("queue spec weight", "heavy", "Expected int", VOLCANO),
    Edit("queue spec weight", 70000, "<= 65535", VOLCANO),
    Edit("queue spec wieght", 2, 'did you mean "weight"', VOLCANO, named=""),
    Edit("queue spec", {"wieght": 2}, 'did you mean "weight"', VOLCANO, named="wieght"),
    Edit("queue spec capability", {"cpu": "-4"}, "must not be negative", VOLCANO, named="capability.cpu"),
    Edit("queue spec capability", {"memory": "1TB"}, "did you mean 1T or 1Ti", VOLCANO),
    Edit("queue spec capabilities", {"cpu": "4"}, 'did you mean "capability"', VOLCANO),
    Edit("queue spec deserved", {"cpu": "-4"}, "must not be negative", VOLCANO, named="deserved.cpu"),
    Edit("queue spec guarantee", {"resource": {"cpu": "-4"}}, "must not be negative", VOLCANO),
    Edit("queue spec guarantee", {"resources": {"cpu": "4"}}, 'did you mean "resource"', VOLCANO),
    Edit("queue spec parent", "rooot", "there is no queue", VOLCANO),
    Edit("queue spec parent", "research", "form a cycle", VOLCANO),
    Edit("queue spec reclaimable", "yes", "Expected bool", VOLCANO),
    Edit("queue status state", "open", 'did you mean "Open"', VOLCANO),
    Edit(f"{QUOTA} quota", -5, "must not be negative", ("kai",)),
    Edit(f"{QUOTA} limit", -2, "must not be negative", ("kai",)),
    Edit(f"{QUOTA} overQuotaWeight", -3, "must not be negative", ("kai",)),
    Edit(f"{QUOTA} quota", "8", "Expected float", ("kai",)),
    Edit(f"{QUOTA} quotas", 8, 'did you mean "quota"', ("kai",), named=""),
    Edit("queue spec resources gpu", {"qouta": 8}, 'did you mean "quota"', ("kai",), named="qouta"),
    Edit(
        "queue spec resources gpu", {"quota": 8, "limit": 4}, "more than the limit", ("kai",), named="quota"
    ),
    Edit("queue spec resources gpus", {"quota": 8}, 'did you mean "gpu"', ("kai",), named=""),
    Edit("queue spec preemptMinRuntime", "soon", "must be a duration", ("kai",)),
    Edit("queue spec reclaimMinRuntime", "10", "must be a duration", ("kai",)),
    Edit("queue spec preemptMinRuntime", 10, "Expected str", ("kai",)),
    Edit("queue spec parentQueue", "departmnt", 'did you mean "department"', ("kai",)),
    Edit("queue spec parentQueue", "research", "form a cycle", ("kai",)),
    Edit("queue spec parentqueue", "department", 'did you mean "parentQueue"', ("kai",), named=""),
    Edit("queue spec priority", "high", "Expected int", ("kai",)),
    Edit("queue spec", 5, "Expected object"),
    Edit("queue metadata name", GONE, "missing"),
    Edit("queue metadata name", "my queue", "must not contain spaces"),
    # -- nodes
    Edit("node status allocatable cpu", "many", "not a quantity"),
    Edit("node status allocatable memory", "256GB", "did you mean 256G or 256Gi"),
    Edit("node status allocatable nvidia.com/gpu", "7.5", "must be a whole number"),
    Edit("node status allocatable cpu", "-64", "must not be negative"),
    Edit("node status", {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "8"}}, "more than the capacity"),
    Edit("node status", {}, "missing", named="allocatable"),
    Edit("node status", {"allocatible": {"cpu": "8"}}, 'did you mean "allocatable"', named="allocatible"),
    Edit(
        "node spec taints", [{"key": "a", "effect": "NoSchedul"}], "unknown effect", named="taints[0].effect"
    ),
    Edit("node spec taints", [{"effect": "NoSchedule"}], "key", named="taints[0]"),
    Edit("node spec taint", [], 'did you mean "taints"'),
    Edit("node spec unschedulable", "true", "Expected bool"),
    Edit("node spec unscheduleable", True, 'did you mean "unschedulable"'),
    Edit("node metadata labels zone", 1, "Expected str"),
    Edit("node status conditions", {"type": "Ready"}, "Expected array"),
    # -- claims, classes
    Edit("claim spec resources requests storage", "10GB", "did you mean 10G or 10Gi"),
    Edit("claim spec resources requests storage", "-1Gi", "must not be negative"),
    Edit("claim spec resources requests", {}, "missing", named="storage"),
    Edit("claim spec storageClassName", "fsat", 'did you mean "fast"'),
    Edit("claim spec storageClass", "fast", 'did you mean "storageClassName"', named=""),
    Edit("claim spec accessModes", ["ReadWriteOnec"], 'did you mean "ReadWriteOnce"', named="accessModes[0]"),
    Edit("claim spec accessModes", "ReadWriteOnce", "Expected array"),
    Edit("claim spec", "10Gi", "Expected object"),
    Edit("claim spec selector", {"matchExpressions": [{"key": "a", "operator": "Is"}]}, "selector"),
    Edit("storageclass volumeBindingMode", "Late", "expected one of Immediate"),
    Edit("storageclass volumeBindingmode", "Immediate", 'did you mean "volumeBindingMode"', named=""),
    Edit("class value", "high", "Expected int"),
    Edit("class value", GONE, "missing"),
    Edit("class value", 2_000_000_000, "at most 1,000,000,000"),
    Edit("class globalDefault", "true", "Expected bool"),
    Edit("class preemptionPolicy", "Sometimes", "unknown value"),
    Edit("class globaldefault", True, 'did you mean "globalDefault"'),
    # -- any object
    Edit("node kind", "", "missing"),
    Edit("node kind", 3, "not a string"),
    Edit("node apiVersion", GONE, "missing"),
    Edit("node metadata", GONE, "missing"),
]


@dataclass(frozen=True)
class Text:
    """A file of its own; `line` is None where the mistake has no line."""

    name: str
    content: str | bytes
    line: int | None
    words: str


_GROUP = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: other, namespace: ml}
spec:
  queue: research
"""
TEXTS = [
    Text("a.yaml", "kind: Pod\nmetadata: [x\nspec: {}\n", 3, "not YAML"),
    Text("a.yaml", "kind: Pod\n\tname: x\n", 2, "not YAML"),
    Text("a.yaml", "kind: 'Pod\n", 1, "not YAML"),
    Text("a.yaml", "a: *nothing\n", 1, "not YAML"),
    Text("a.yaml", "a: b: c\n", 1, "not YAML"),
    Text("a.yaml", "just words\n", 1, "expected a Kubernetes object"),
    Text("a.yaml", "---\n---\n- 1\n- 2\n", 3, "expected a Kubernetes object"),
    Text("a.yaml", "a: &a [*a]\n", 1, "refers to itself"),
    Text("a.yaml", "!!python/object:os.system x\n", 1, "not YAML"),
    Text("a.yaml", b"kind: \xff\n", 1, "not UTF-8"),
    Text("a.yaml", "[" * 20_000 + "]" * 20_000, 1, "nested too deeply"),
    Text(
        "a.yaml",
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: x}}\nspec: {'[' * 20_000 + ']' * 20_000}\n",
        4,
        "nested too deeply",
    ),
    Text("a.json", "{", 1, "not JSON"),
    Text("a.json", '{"kind": "Pod",}', 1, "not JSON"),
    Text("a.json", '{\n"kind": oops}', 2, "not JSON"),
    Text("a.json", "[1]", 1, "expected a Kubernetes object"),
    Text("a.json", '{"kind": NaN}', None, "NaN is not a JSON value"),
    Text("a.json", "[" * 100_000, None, "nested too deeply"),
    Text("a.json", "null", 1, "expected a Kubernetes object"),
    Text("a.yaml", f"{_GROUP}  minMember: 1\n  minMember: 2\n", 7, "spec.minMember: given twice"),
    Text("a.yaml", f"{_GROUP}  minMember: 1\nspec:\n  queue: research\n", 7, "spec: given twice"),
    Text("a.yaml", "apiVersion: v1\nkind: List\nitems:\n- {a: 1}\n- 3\n", 5, "expected a Kubernetes"),
    Text(
        "a.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {namespace: x}\nspec: {}\n",
        3,
        "Pod: metadata.name: missing",
    ),
    Text("a.yaml", "spec: {}\n", 1, "kind: missing"),
    Text(
        "a.yaml",
        "apiVersion: v1\nkind: pod\nmetadata: {name: x}\nspec: {containers: []}\n",
        None,
        "did you mean Pod?",
    ),
    Text("a.yaml", _GROUP.replace("PodGroup", "Podgroup"), None, "did you mean PodGroup?"),
    Text("a.yaml", _GROUP.replace("volcano.sh", "volcanoo.sh"), None, "it is in scheduling.volcano.sh"),
    Text("a.yaml", "---\nkind: Pod\n", 2, "apiVersion: missing"),
    Text(
        "a.json",
        '[{"apiVersion": "v1", "kind": "Node",\n "metadata": {"name": "x", "name": "y"}, "status": {"capacity": {"cpu": 1}}}]',
        2,
        "metadata.name: given twice",
    ),
]


@dataclass(frozen=True)
class File:
    """A configuration: an error (exit code 2) or a warning, with the line."""

    content: str
    line: int | None
    words: str
    profile: str = "volcano"
    error: bool = False


_TIERS = "tiers:\n- plugins:\n  - name: gang\n  - name: predicates\n"
CONFIGURATIONS = [
    File('actions: "allocate, allocate"\n' + _TIERS, 1, 'action "allocate" is listed a second time'),
    File('actions: "alocate"\n' + _TIERS, 1, 'did you mean "allocate"', error=True),
    File('actions: "allocate,, backfill"\n' + _TIERS, 1, "an action name is empty", error=True),
    File("actions: 3\n" + _TIERS, 1, "actions must be text", error=True),
    File("action: allocate\n" + _TIERS, 1, 'did you mean "actions"'),
    File("actions: allocate\ntier: []\n", 2, 'did you mean "tiers"'),
    File("actions: allocate\ntiers: gang\n", 2, "tiers must be a list", error=True),
    File("actions: allocate\ntiers:\n- plugin: []\n", 3, 'did you mean "plugins"'),
    File("actions: allocate\ntiers:\n- plugins:\n  - nam: gang\n", 4, "needs a name", error=True),
    File("actions: allocate\ntiers:\n- plugins:\n  - name: gan\n", 4, 'did you mean "gang"'),
    File(
        "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enableJobOrdr: true\n", 5, "did you mean"
    ),
    File(
        "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enablePreemptable: 3\n",
        5,
        "true or false",
        error=True,
    ),
    File(
        "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: gang\n", 5, "listed a second time"
    ),
    File("actions: [allocate\n", 1, "not valid YAML", error=True),
    File("actions: allocate\nactions: backfill\n", 2, "stands twice", error=True),
    File(
        "actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    arguments: {binpack.weigth: 3}\n",
        5,
        "unknown argument",
    ),
    File(
        "actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    arguments: {binpack.weight: much}\n",
        5,
        "must be an integer",
    ),
    File("actions: allocate\ncompat: loose\n", 2, "compat must be", error=True),
    File("- allocate\n", None, "must be a mapping", error=True),
    File('actions: "allocate, reclaimm"\n', 1, 'did you mean "reclaim"', "kai", error=True),
    File('actions: "allocate, allocate"\n', 1, "listed a second time", "kai"),
    File("queueDepthPerAction: {alocate: 3}\n", 1, "did you mean", "kai"),
    File("queueDepthPerAction: {allocate: many}\n", 1, "must be an integer", "kai", error=True),
    File("tiers:\n- plugins:\n  - name: proportio\n", 3, 'did you mean "proportion"', "kai"),
    File(
        "tiers:\n- plugins:\n  - name: minruntime\n    arguments: {defaultPreemptMinRuntime: soon}\n",
        4,
        "duration",
        "kai",
    ),
    File('actions: "allocate, allocate"\n', 1, "listed a second time", "maniple"),
    File('actions: "alocate"\n', 1, 'did you mean "allocate"', "maniple", error=True),
    File("tiers:\n- plugins:\n  - name: fairnes\n", 3, "did you mean", "maniple"),
]

# Words of the command line that are refused, and what is said.
WORDS = [
    (["--profile", "volcan"], "volcano"),
    (["--actions", "alocate"], 'did you mean "allocate"'),
    (["--option", "schedulerNam=x"], 'did you mean "schedulerName"'),
    (["--option", "searchBudget=-1"], "searchBudget"),
    (["--option", "searchBudget"], "key=value"),
    (["--option", "shard={"], "not JSON"),
    (["--now", "yesterday"], "not a time"),
    (["--now", "2026-01-01T00:00:00"], "no time zone"),
    (["--conf", "nowhere.yaml"], "does not exist"),
    (["-o", "jsn"], "json"),
    (["--unheard-of-threshold", "2m"], "No such option"),
    (["--profile", "kai", "--option", "unheardOfThreshold=1"], "unknown option"),
    (["--profile", "kai", "--max-consolidation-preemptees", "few"], "whole number"),
    (["--profile", "kai", "--default-staleness-grace-period", "long"], "duration"),
    (["--profile", "kai", "--shard", "x"], "no SchedulingShard"),
    (["--profile", "volcano", "--max-consolidation-preemptees", "3"], "is for the profile kai"),
    (["--plugins-dir", "nowhere"], "does not exist"),
    (["--fail-on-wating"], "--fail-on-waiting"),
]

# Parts of a KAI snapshot that a newer version or a slip may have put there: none refuses it.
SNAPSHOTS = [
    (
        "schedulerParams",
        {"unheardOfThreshold": 120_000_000_000},
        "unheardOfThreshold: unknown parameter",
    ),
    ("schedulerParams", {"fullHierarchyFairnes": True}, 'did you mean "fullHierarchyFairness"'),
    ("schedulerParams", {"maxNumberConsolidationPreemptees": "few"}, "must be a whole number"),
    (
        "schedulerParams",
        {"partitionParams": {"NodePoolLabel": "x"}},
        "partitionParams.NodePoolLabel: unknown parameter",
    ),
    ("schedulerParams", {"globalDefaultStalenessGracePeriod": "later"}, "must be a duration"),
    ("config", {"actions": "allocate, defragment"}, 'unknown action "defragment"'),
    ("config", {"actions": "allocate", "nodeScoring": {}}, "nodeScoring: unknown key"),
    ("config", {"tiers": [{"plugins": [{"name": "zonespread"}]}]}, "zonespread"),
    (
        "config",
        {"tiers": [{"plugins": [{"name": "proportion", "arguments": {"z": "1"}}]}]},
        'unknown argument "z"',
    ),
    ("rawObjects", {"nodeResourceTopologies": [{}]}, "nodeResourceTopologies: unknown list"),
    ("rawObjects", {"pods": "none"}, "rawObjects.pods: must be a list"),
    ("rawObjects", {"pods": [3]}, "rawObjects.pods[0]: expected an object"),
    ("statistics", {"cycles": 3}, "statistics: unknown part"),
]
