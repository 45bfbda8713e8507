"""The rules: a request and what is known of the cluster give a verdict. Nothing here reads a clock or a socket.

A change is refused only for what it makes worse: what was wrong before it does not keep controllers from writing a
status, or people from mending an object step by step. Objects that are being deleted may always change.
"""

from maniple.admission.groups import group_findings
from maniple.admission.mutation import patch_of
from maniple.admission.naming import Missing
from maniple.admission.pods import pod_findings
from maniple.admission.queues import deletion_findings, queue_findings
from maniple.admission.verdict import CREATE, DELETE, UPDATE, Finding, Raw, Request, Verdict, judged
from maniple.admission.world import Settings, World
from maniple.objects.core import Pod
from maniple.objects.kai import KaiPodGroup, KaiQueue
from maniple.objects.load import ObjectError, load, struct_of, title_of
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue


def review(request: Request, world: World, settings: Settings, *, mutating: bool = False) -> Verdict:
    """What to answer: whether the object is allowed or, when `mutating`, what to fill in."""
    raw = request.subject
    kind = struct_of(raw) if raw is not None else None
    if raw is None or kind is None or kind not in (Pod, *world.queue_kinds, *world.group_kinds):
        return Verdict()
    if kind.namespaced and request.namespace in settings.skipped_namespaces:
        return Verdict(kind=kind)
    missing: Missing = set()
    if mutating:
        patch = patch_of(kind, raw, request.namespace, world, missing) if request.operation == CREATE else ()
        return Verdict(patch=patch, missing=tuple(sorted(missing, key=repr)), kind=kind)
    findings = _findings(request, kind, world, settings, missing)
    allowed, message, warnings = judged(title_of(raw), findings)
    return Verdict(allowed, message, warnings, missing=tuple(sorted(missing, key=repr)), kind=kind)


def _findings(
    request: Request, kind: type[Object], world: World, settings: Settings, missing: Missing
) -> list[Finding]:
    if request.operation == DELETE:
        item = _loaded(request.old)
        return [*deletion_findings(item, world)] if isinstance(item, VolcanoQueue | KaiQueue) else []
    if request.operation not in (CREATE, UPDATE) or request.object is None:
        return []
    if kind is Pod and request.operation != CREATE:
        return []  # what is checked of a pod cannot change later
    if _is_leaving(request.object):
        return []
    found = _object_findings(request.object, world, settings, missing)
    if request.operation != UPDATE or request.old is None or not found:
        return found
    before = {*_object_findings(request.old, world, settings, set())}
    return [one for one in found if one not in before]


def _object_findings(raw: Raw, world: World, settings: Settings, missing: Missing) -> list[Finding]:
    try:
        item = load(raw)
    except ObjectError as error:
        if struct_of(raw) is Pod and not _is_ours(raw, world):
            return []
        return [Finding(error.problem.field, error.problem.message)]
    if not world.dialect.covers(item):
        return []  # of another node pool
    match item:
        case Pod() if item.spec.scheduler_name in world.dialect.scheduler_names:
            return [*pod_findings(item, world, settings, missing)]
        case VolcanoQueue() | KaiQueue():
            return [*queue_findings(item, world, missing)]
        case VolcanoPodGroup() | KaiPodGroup():
            return [*group_findings(item, raw, world, settings, missing)]
    return []


def _is_ours(raw: Raw, world: World) -> bool:
    spec = raw.get("spec")
    name = spec.get("schedulerName") if isinstance(spec, dict) else None
    return isinstance(name, str) and name in world.dialect.scheduler_names


def _is_leaving(raw: Raw) -> bool:
    metadata = raw.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))


def _loaded(raw: Raw | None) -> Object | None:
    try:
        return load(raw) if raw is not None else None
    except ObjectError:
        return None
