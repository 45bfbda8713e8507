"""The Queue that `maniple queue create` creates, in either system's form."""

from typing import Any

import click

from maniple.objects.load import ObjectError, load
from maniple.objects.quantity import parse

_KAI_UNITS = {"cpu": 1000, "memory": 1 / 10**6, "gpu": 1}  # thousandths of a core, millions of bytes, devices


def manifest(
    name: str,
    *,
    system: str,
    parent: str = "",
    weight: int = 1,
    priority: int | None = None,
    quota: str | None = None,
    limit: str | None = None,
    guarantee: str | None = None,
) -> dict[str, Any]:
    """The object, checked; raises `click.UsageError` for amounts that cannot be read."""
    entitled, most, kept = (
        _amounts(option, text)
        for option, text in (("quota", quota), ("limit", limit), ("guarantee", guarantee))
    )
    if system == "kai":
        if kept:
            raise click.UsageError("--guarantee is for --system volcano; a queue of KAI has --quota")
        made = _of_kai(name, parent, weight, priority, entitled, most)
    else:
        made = _of_volcano(name, parent, weight, priority, entitled, most, kept)
    try:
        load(made)
    except ObjectError as error:
        raise click.UsageError(str(error)) from None
    return made


def _of_volcano(
    name: str,
    parent: str,
    weight: int,
    priority: int | None,
    quota: dict[str, str],
    limit: dict[str, str],
    guarantee: dict[str, str],
) -> dict[str, Any]:
    spec: dict[str, Any] = {"weight": weight, "reclaimable": True}
    spec |= {"parent": parent} if parent else {}
    spec |= {"priority": priority} if priority is not None else {}
    spec |= {"deserved": quota} if quota else {}
    spec |= {"capability": limit} if limit else {}
    spec |= {"guarantee": {"resource": guarantee}} if guarantee else {}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def _of_kai(
    name: str, parent: str, weight: int, priority: int | None, quota: dict[str, str], limit: dict[str, str]
) -> dict[str, Any]:
    shares = {
        one: {
            "quota": _in_kai_units(one, quota.get(one), 0),
            "overQuotaWeight": weight,
            "limit": _in_kai_units(one, limit.get(one), -1),
        }
        for one in _KAI_UNITS
    }
    for amounts, option in ((quota, "quota"), (limit, "limit")):
        for unknown in amounts.keys() - _KAI_UNITS.keys():
            known = ", ".join(_KAI_UNITS)
            raise click.UsageError(
                f"--{option}: a queue of KAI has no {unknown!r}; expected one of {known} (all GPUs are 'gpu')"
            )
    spec: dict[str, Any] = {"resources": shares}
    spec |= {"parentQueue": parent} if parent else {}
    spec |= {"priority": priority} if priority is not None else {}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def _in_kai_units(resource: str, amount: str | None, otherwise: int) -> float | int:
    if amount is None:
        return otherwise
    value = float(parse(amount)) * _KAI_UNITS[resource]
    return int(value) if value == int(value) else value


def _amounts(option: str, text: str | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, (one.strip() for one in (text or "").split(","))):
        name, equals, amount = part.partition("=")
        try:
            readable = bool(name) and bool(equals) and parse(amount) >= 0
        except ValueError:
            readable = False
        if not readable:
            raise click.UsageError(
                f"--{option}: {part!r} is not of the form RESOURCE=AMOUNT with a Kubernetes quantity, such as"
                " nvidia.com/gpu=8 or memory=64Gi"
            )
        found[name] = amount
    return found
