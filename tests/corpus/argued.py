"""The recorded cases in which Maniple differs knowingly, each with the reason."""

_TWICE = (
    "KAI evicts a task that the step before had chosen a second time, within one trial: the pod is deleted twice and its queue's books lose it twice. "
    "Here it goes once."
)
_ONE_VOLUME = "KAI keeps no note of volumes within a cycle and gives one volume to two claims; the second pod cannot be bound. Here a volume is promised once."

ARGUED: dict[str, str] = {
    "kai-00093": _ONE_VOLUME,
    "kai-00119": "In KAI's floating-point numbers 0.8 + 1.6 + 0.6 GPUs are more than a limit of 3. Here parts of GPUs are whole numbers.",
    "kai-00555": _ONE_VOLUME,
    "kai-01035": _TWICE,
    "kai-01209": "KAI's undoing of a trial leaves the books of a shared GPU wrong when its task was pipelined, and the node looks full. Here an undo is exact.",
    "kai-01262": _TWICE,
    "kai-01391": _TWICE,
    "kai-01611": _ONE_VOLUME,
    "kai-01891": _TWICE,
    "kai-02040": _ONE_VOLUME,
    "kai-02622": _TWICE,
}
