"""How this package names an object: by its kind and key."""

from maniple.objects.meta import Object

Ref = tuple[type[Object], str]


def ref_of(item: Object) -> Ref:
    return type(item), item.key


def kind_of(kind: type[Object]) -> str:
    """Kinds of two systems may have one name."""
    return f"{kind.api_group}/{kind.kind}" if kind.api_group else kind.kind
