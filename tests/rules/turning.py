"""Rules with one of them turned round."""

from dataclasses import replace

from maniple.framework.rules import Rules


def turned(rules: Rules, rule: str) -> Rules:
    """The same rules but for one, named with its subject."""
    subject, _, name = rule.partition(".")
    part = getattr(rules, subject)
    return replace(rules, **{subject: replace(part, **{name: not getattr(part, name)})})
