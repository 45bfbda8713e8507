"""How deeply a YAML text is nested, found before it is loaded: the loader recurses in C and would end the process."""

import re

import yaml

DEEPEST = 1_000

_BRACKET = re.compile(r"[\[{\]}]")
# A block is a column further in than the one around it, or, for sequences in mappings, in the same one.
_INDENTED = re.compile(rf"^(?:[-?:] | ){{{DEEPEST // 2},}}", re.MULTILINE)
_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def nested_too_deeply(text: str) -> bool:
    """Exact, and next to free for texts that cannot be; a text with errors is left to the loader."""
    return _may_be(text) and _is(text)


def _may_be(text: str) -> bool:
    """Brackets inside strings count here, too."""
    if _INDENTED.search(text):
        return True
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    depth = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST:
            return True
    return False


def _is(text: str) -> bool:
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_PARSER):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > DEEPEST:
                return True
    except yaml.YAMLError:
        return False
    return False
