"""The recorded cases in which Maniple differs knowingly, each with the reason."""

# With preempt alone nobody has prepared a pod's filters when Volcano asks them about the node that the pod was promised. They fail, so
# that the promise is not honoured. Next to allocate, as everybody has it, they answer, and the pod waits for its node.
_UNPREPARED = "preempt without allocate: Volcano's filters cannot answer about a promised node, and it goes on as if there were no promise"
# An eviction that is taken back does not get as far as kube-scheduler's books: scores and filters take the pod for gone until the cycle ends.
_FORGOTTEN = "Volcano's scores forget a pod that it wanted to evict and spared after all"

ARGUED: dict[str, str] = {
    "volcano-00681": _UNPREPARED,
    "volcano-01292": _UNPREPARED,
    "volcano-01574": _UNPREPARED,
    "volcano-01843": _FORGOTTEN,
}
