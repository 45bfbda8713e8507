"""What a namespace says about the groups in it that say nothing themselves."""

from maniple.objects.meta import Object
from maniple.workloads.wishes import QUEUE


def queue_of_namespace(namespace: Object) -> str:
    """The queue of groups that name none; empty if the namespace says nothing. A label counts before an annotation."""
    meta = namespace.metadata
    said = (notes.get(key) for key in QUEUE for notes in (meta.labels, meta.annotations))
    return next(filter(None, said), "")
