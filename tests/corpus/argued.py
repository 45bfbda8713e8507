"""The recorded cases in which Maniple differs knowingly, each with the reason."""

# With preempt alone nobody has prepared a pod's filters when Volcano asks them about the node that the pod was
# promised. They fail, so that the promise is not honoured. Next to allocate, as everybody has it, they answer, and
# the pod waits for its node.
_UNPREPARED = (
    "preempt without allocate: Volcano's filters cannot answer about a promised node, so the promise is lost"
)
# An eviction that is taken back does not get as far as kube-scheduler's books: scores and filters take the pod for gone
# until the cycle ends.
_FORGOTTEN = "Volcano's scores forget a pod that it wanted to evict and spared after all"
# A task of a job that has a further group among the victims is evicted once as what the step before arrived at, and
# again with its job. The queue's books lose it twice, which can change what follows.
_TWICE = (
    "within one trial KAI evicts a task twice: the pod is deleted twice and its queue's books lose it twice"
)
# Nothing is noted within a cycle. The second pod's binding fails, and a gang is bound in part.
_ONE_VOLUME = "KAI gives one volume to two claims in one cycle; here a volume is promised once"
_FLOATS = "in KAI's floating-point numbers 0.8 + 1.6 + 0.6 GPUs are more than a limit of 3"
# The task that shares it was pipelined before the trial; afterwards the node looks full to the next trial.
_INEXACT = "KAI's undoing of a trial leaves the books of a shared GPU wrong; here an undo is exact"

# KAI of August 2026 counts them so, too; the recorded version is older.
_ONE_DEVICE = "a device of a claim that several pods share counts once, on its node and in queues; KAI of March 2026 counts it for every pod"
_SHARED_CLAIMS = (
    "00123 00288 00321 00354 00486 00519 00618 00684 00783 00816 00882 00981 01014 01113 01179 01245 01278"
    " 01377 01410 01509 01542 01641 01707 01773 01806 01839 01971 02004 02070 02169 02202 02301 02466 02631"
)

ARGUED: dict[str, str] = {
    **{f"kai-{number}": _ONE_DEVICE for number in _SHARED_CLAIMS.split()},
    "kai-00093": _ONE_VOLUME,
    "kai-00119": _FLOATS,
    "kai-00555": _ONE_VOLUME,
    "kai-01035": _TWICE,
    "kai-01209": _INEXACT,
    "kai-01262": _TWICE,
    "kai-01391": _TWICE,
    "kai-01611": _ONE_VOLUME,
    "kai-01891": _TWICE,
    "kai-02040": _ONE_VOLUME,
    "kai-02622": _TWICE,
    "volcano-00681": _UNPREPARED,
    "volcano-01292": _UNPREPARED,
    "volcano-01574": _UNPREPARED,
    "volcano-01843": _FORGOTTEN,
}
