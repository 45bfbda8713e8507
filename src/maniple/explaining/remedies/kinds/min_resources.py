"""`minResources` of a Volcano group follows what its pods request: its controller derives it from them."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from maniple.explaining.remedies.kinds.amounts import written
from maniple.explaining.remedies.subject import Subject, setting
from maniple.explaining.remedies.values import Change
from maniple.objects.quantity import parse
from maniple.objects.requests import pod_requests
from maniple.objects.volcano import VolcanoPodGroup


def without(
    subject: Subject, fewer: Mapping[str, int], less: Mapping[str, Fraction | int]
) -> Iterator[Change]:
    """Without so many pods of each role, and with so much less of each resource."""
    group = subject.group
    if not isinstance(group, VolcanoPodGroup) or not group.spec.min_resources or subject.is_made:
        return
    saved = dict(less)
    for role, count in fewer.items():
        pods = subject.roles.get(role) or subject.pods
        for name, amount in pod_requests(pods[0]).items() if pods else ():
            saved[name] = saved.get(name, 0) + count * amount
    for name, stated in group.spec.min_resources.items():
        if saved.get(name):
            after = max(parse(stated) - saved[name], 0)
            yield setting(group, ("spec", "minResources", name), stated, written(name, after))
