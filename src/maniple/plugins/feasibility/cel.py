"""The part of CEL (Common Expression Language) in which device selectors are written.

`compiled` turns a text into an `Expression` or into the `CelError` that says what is wrong with it;
`Expression.holds` evaluates it on a device. Called by `device_catalogue.py`. Nothing is passed to Python to
evaluate, nothing but `CelError` is ever raised, and the work is bounded by the text: its length and depth are
limited, there are no loops and no lists of lists (which `cel.bind` could double with every use), and patterns
are matched in linear time.

Supported: `device.driver`, `device.allowMultipleAllocations`, `device.attributes[domain].name`,
`device.capacity[domain].name`; `== != < <= > >= in && || ! ?:`; strings, numbers, true, false, null and
lists; `has()`, `size()`, `quantity()`, `semver()`, `isQuantity()`, `isSemver()`, `cel.bind()`; and the
methods in `cel_values.py`. As in CEL, an error in one operand does not matter if the other operand of && or
|| decides, and an unknown domain of a device is empty.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from maniple.plugins.feasibility.cel_tokens import END, CelError, Token, tokens_of
from maniple.plugins.feasibility.cel_values import (
    FUNCTIONS,
    Device,
    Value,
    boolean,
    called,
    contains,
    element,
    equal,
    field_of,
    has_field,
    indexed,
    ordered,
)

Scope = Mapping[str, Value | CelError]
_Evaluate = Callable[[Scope], Value]

_LONGEST = 10 * 1024  # the API accepts no longer ones
_DEEPEST = 50  # nested brackets
_DEEPEST_NODE = 200
_ORDERS: dict[str, Callable[[int], bool]] = {
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}
_CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed selector."""

    _evaluate: _Evaluate

    def holds(self, device: Device) -> bool:
        return boolean(self._evaluate({"device": device}))


@lru_cache(maxsize=4096)
def compiled(text: str) -> Expression | CelError:
    if len(text) > _LONGEST:
        return CelError(f"longer than {_LONGEST} characters")
    try:
        return Expression(_Parser(tokens_of(text)).whole().evaluate)
    except CelError as error:
        return error


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of an expression; `field` is set for `a.b`, which `has` inspects."""

    evaluate: _Evaluate
    depth: int = 1
    field: tuple[_Evaluate, str] | None = None


def _node(evaluate: _Evaluate, *parts: _Node, field: tuple[_Evaluate, str] | None = None) -> _Node:
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > _DEEPEST_NODE:
        raise CelError("too deeply nested")
    return _Node(evaluate, depth, field)


class _Parser:
    """One pass over the tokens, by descent; each method reads one level of precedence."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._variables = ["device"]

    def whole(self) -> _Node:
        node = self._expression()
        if self._next.kind != END:
            raise self._unexpected()
        return node

    # -- tokens ---------------------------------------------------------------------------------------------------

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _unexpected(self) -> CelError:
        token = self._next
        what = "the end" if token.kind == END else repr(token.text[:20])
        return CelError(f"unexpected {what} at position {token.position + 1}")

    def _accept(self, *signs: str) -> str:
        """The next sign, if it is one of these; otherwise nothing is read."""
        token = self._next
        if token.kind == "sign" and token.text in signs:
            self._at += 1
            return token.text
        return ""

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise self._unexpected()

    def _name(self) -> str:
        token = self._next
        if token.kind != "name":
            raise self._unexpected()
        self._at += 1
        return token.text

    # -- levels of precedence -------------------------------------------------------------------------------------

    def _expression(self) -> _Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CelError("too deeply nested")
        node = self._either()
        if self._accept("?"):
            first = self._either()
            self._expect(":")
            node = _choice(node, first, self._expression())
        self._depth -= 1
        return node

    def _either(self) -> _Node:
        parts = [self._both()]
        while self._accept("||"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else _joined(parts, decisive=True)

    def _both(self) -> _Node:
        parts = [self._relation()]
        while self._accept("&&"):
            parts.append(self._relation())
        return parts[0] if len(parts) == 1 else _joined(parts, decisive=False)

    def _relation(self) -> _Node:
        node = self._unary()
        while True:
            sign = self._accept("==", "!=", "<", "<=", ">", ">=")
            if not sign and self._next.kind == "name" and self._next.text == "in":
                sign = self._name()
            if not sign:
                return node
            node = _compared(sign, node, self._unary())

    def _unary(self) -> _Node:
        negations = 0
        while self._accept("!"):
            negations += 1
        if not negations:
            return self._member()
        inner, odd = self._member(), bool(negations % 2)
        return _node(lambda scope: boolean(inner.evaluate(scope)) is not odd, inner)

    def _member(self) -> _Node:
        node = self._primary()
        while True:
            if self._accept("."):
                node = self._selected(node)
            elif self._accept("["):
                index = self._expression()
                self._expect("]")
                node = _at_index(node, index)
            else:
                return node

    def _selected(self, node: _Node) -> _Node:
        name = self._name()
        if not self._accept("("):
            inner = node.evaluate
            return _node(lambda scope: field_of(inner(scope), name), node, field=(inner, name))
        given = self._arguments()
        return _node(
            lambda scope: called(name, node.evaluate(scope), [one.evaluate(scope) for one in given]),
            node,
            *given,
        )

    def _arguments(self, closing: str = ")") -> list[_Node]:
        given: list[_Node] = []
        while not self._accept(closing):
            if given:
                self._expect(",")
                if closing == "]" and self._accept(closing):
                    break
            given.append(self._expression())
        return given

    def _primary(self) -> _Node:
        token = self._next
        if token.kind == "literal":
            self._at += 1
            return _Node(lambda scope: token.value)
        if self._accept("("):
            node = self._expression()
            self._expect(")")
            return node
        if self._accept("["):
            items = self._arguments("]")
            return _node(lambda scope: [element(item.evaluate(scope)) for item in items], *items)
        return self._named(self._name())

    def _named(self, name: str) -> _Node:
        if name in _CONSTANTS:
            return _Node(lambda scope: _CONSTANTS[name])
        if name == "cel":
            return self._binding()
        if not self._accept("("):
            if name not in self._variables:
                raise CelError(f"unknown name {name!r}")
            return _Node(lambda scope: _looked_up(scope, name))
        given = self._arguments()
        if name == "has":
            return _presence(given)
        function = FUNCTIONS.get(name)
        if function is None or len(given) != 1:
            raise CelError(f"the function {name}() with {len(given)} arguments is not supported")
        return _node(lambda scope: function(given[0].evaluate(scope)), *given)

    def _binding(self) -> _Node:
        """`cel.bind(name, value, expression)`: the value is computed once."""
        self._expect(".")
        if self._name() != "bind":
            raise CelError("of cel, only cel.bind() is supported")
        self._expect("(")
        name = self._name()
        self._expect(",")
        value = self._expression()
        self._expect(",")
        self._variables.append(name)
        inner = self._expression()
        self._variables.pop()
        self._expect(")")
        return _node(lambda scope: inner.evaluate({**scope, name: _outcome(value, scope)}), value, inner)


# -- evaluation ----------------------------------------------------------------------------------------------------


def _joined(parts: list[_Node], *, decisive: bool) -> _Node:
    """|| (decided by a true operand) or && (by a false one); an error counts only if nothing decides."""

    def evaluate(scope: Scope) -> Value:
        failure: CelError | None = None
        for part in parts:
            outcome = _outcome(part, scope)
            if outcome is decisive:
                return decisive
            if outcome is not (not decisive) and failure is None:
                failure = outcome if isinstance(outcome, CelError) else CelError("not true or false")
        if failure is not None:
            raise failure
        return not decisive

    return _node(evaluate, *parts)


def _choice(condition: _Node, first: _Node, second: _Node) -> _Node:
    def evaluate(scope: Scope) -> Value:
        chosen = first if boolean(condition.evaluate(scope)) else second
        return chosen.evaluate(scope)

    return _node(evaluate, condition, first, second)


def _compared(sign: str, left: _Node, right: _Node) -> _Node:
    def evaluate(scope: Scope) -> Value:
        one, other = left.evaluate(scope), right.evaluate(scope)
        if sign == "in":
            return contains(other, one)
        if sign in _ORDERS:
            return _ORDERS[sign](ordered(one, other))
        return equal(one, other) is (sign == "==")

    return _node(evaluate, left, right)


def _at_index(node: _Node, index: _Node) -> _Node:
    return _node(lambda scope: indexed(node.evaluate(scope), index.evaluate(scope)), node, index)


def _presence(given: list[_Node]) -> _Node:
    field = given[0].field if len(given) == 1 else None
    if field is None:
        raise CelError("has() needs a field, such as has(a.b)")
    inner, name = field
    return _node(lambda scope: has_field(inner(scope), name), *given)


def _outcome(node: _Node, scope: Scope) -> Value | CelError:
    try:
        return node.evaluate(scope)
    except CelError as error:
        return error


def _looked_up(scope: Scope, name: str) -> Value:
    value = scope[name]
    if isinstance(value, CelError):
        raise value
    return value
