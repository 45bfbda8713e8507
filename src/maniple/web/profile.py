"""A profile of the running process: where its threads were, sampled many times a second.

Sampling costs little and sees the event loop and the cycle's thread alike. The result is text: the functions in which
most samples were, then every stack in the collapsed form that flame graphs are drawn from.
"""

import sys
import threading
import time
from collections import Counter
from types import FrameType

INTERVAL_SECONDS = 0.005
MOST_SECONDS = 300.0
SHOWN = 40
# Where threads wait, in the innermost function.
_IDLE = frozenset({"select", "poll", "wait", "_worker"})


def sampled(seconds: float) -> Counter[tuple[str, ...]]:
    """How often each stack was seen, outermost function first; blocks so long, in a thread of its own."""
    me, stacks = threading.get_ident(), Counter[tuple[str, ...]]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident != me and frame.f_code.co_name not in _IDLE:
                stacks[names.get(ident, str(ident)), *_stack(frame)] += 1
        time.sleep(INTERVAL_SECONDS)
    return stacks


def _stack(frame: FrameType | None) -> list[str]:
    names = []
    while frame is not None:
        code = frame.f_code
        names.append(f"{code.co_filename.rpartition('/')[2]}:{code.co_qualname}")
        frame = frame.f_back
    return names[::-1]


def collapsed(stacks: Counter[tuple[str, ...]]) -> str:
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in stacks.most_common())


def table(stacks: Counter[tuple[str, ...]], seconds: float) -> str:
    """The functions with most samples: in themselves, and with what they call."""
    own, whole = Counter[str](), Counter[str]()
    for stack, count in stacks.items():
        own[stack[-1]] += count
        for name in set(stack[1:]):
            whole[name] += count
    total = sum(stacks.values())
    lines = [
        f"{total} samples in {seconds:g} s, every {INTERVAL_SECONDS * 1000:g} ms; idle threads left out",
        "",
    ]
    for title, counts in (("in the function itself", own), ("with what it calls", whole)):
        lines.append(f"samples  {title}")
        lines += [f"{count:7}  {name}" for name, count in counts.most_common(SHOWN)]
        lines.append("")
    return "\n".join(lines)
