"""The part of CEL (Common Expression Language) in which device selectors are written.

`compiled` turns a text into an `Expression` or into the `CelError` that says what is wrong with it;
`Expression.holds` evaluates it on a device. Called by `selections.py`. Nothing is passed to Python to evaluate,
and nothing but `CelError` is ever raised. The work is bounded: length and depth of a text are limited, there are
no loops and no lists of lists (which `cel.bind` could double with every use), and every operation counts its
units of work, by the size of its operands, on a meter with a limit. `Expression.reads` names the parts of a device
that decide the outcome: devices that are equal in these need one evaluation.

Supported: `device.driver`, `device.allowMultipleAllocations`, `device.attributes[domain].name`,
`device.capacity[domain].name`; `== != < <= > >= in && || ! ?:`; strings, numbers, true, false, null and
lists; `has()`, `size()`, `quantity()`, `semver()`, `isQuantity()`, `isSemver()`, `cel.bind()`; and the
methods in `cel_values.py`. As in CEL, an error in one operand does not matter if the other operand of && or
|| decides, and an unknown domain of a device is empty.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from maniple.plugins.feasibility.cel_tokens import END, CelError, Token, tokens_of
from maniple.plugins.feasibility.cel_values import (
    FUNCTIONS,
    PATTERN_WORK,
    Device,
    Meter,
    OverLimitError,
    Value,
    boolean,
    called,
    contains,
    element,
    equal,
    field_of,
    has_field,
    indexed,
    matches,
    ordered,
    pattern_of,
    weight,
)

Path = tuple[str, ...]  # of a part of a device, such as ("attributes", "gpu.example.com", "model")

MOST_WORK = 20_000  # units, on one device
_LONGEST_PATH = 3
_TEXT_WORK = 5  # units, to compile a character

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
class Scope:
    """The variables of an evaluation, and its meter."""

    values: Mapping[str, Value | CelError]
    meter: Meter

    def looked_up(self, name: str) -> Value:
        value = self.values[name]
        if isinstance(value, CelError):
            raise value
        return value

    def with_value(self, name: str, value: Value | CelError) -> "Scope":
        return Scope({**self.values, name: value}, self.meter)


_Evaluate = Callable[[Scope], Value]


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed selector; `reads` covers all that its outcome depends on."""

    _evaluate: _Evaluate
    reads: frozenset[Path]

    def holds(self, device: Device, meter: Meter | None = None) -> bool:
        meter = meter or Meter(MOST_WORK)
        try:
            return boolean(self._evaluate(Scope({"device": device}, meter)))
        except OverLimitError:
            raise CelError(f"takes more than {MOST_WORK} units of work on a device; simplify it") from None


def compile_work(text: str) -> int:
    """Units of work to compile a text, at most."""
    return _TEXT_WORK * (min(len(text), _LONGEST) + 10) + PATTERN_WORK * text.count("matches")


def compiled(text: str) -> Expression | CelError:
    if len(text) > _LONGEST:
        return CelError(f"longer than {_LONGEST} characters")
    try:
        parser = _Parser(tokens_of(text))
        return Expression(parser.whole().evaluate, frozenset(parser.reads))
    except CelError as error:
        return error


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of an expression.

    `field` is set for `a.b`, which `has` inspects; `path` for a part of the device; `text` for a literal string.
    """

    evaluate: _Evaluate
    depth: int = 1
    field: tuple[_Evaluate, str] | None = None
    path: Path | None = None
    text: str | None = None

    def below(self, name: str | None) -> Path | None:
        """The path of a field of this part, if its name is known and it can have fields."""
        if self.path is None or name is None or len(self.path) == _LONGEST_PATH:
            return None
        return (*self.path, name)


def _node(
    evaluate: _Evaluate,
    *parts: _Node,
    field: tuple[_Evaluate, str] | None = None,
    path: Path | None = None,
) -> _Node:
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > _DEEPEST_NODE:
        raise CelError("too deeply nested")
    return _Node(evaluate, depth, field, path)


class _Parser:
    """One pass over the tokens, by descent; each method reads one level of precedence."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._variables = ["device"]
        self.reads: set[Path] = set()

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
                longer = self._selected(node)
            elif self._accept("["):
                index = self._expression()
                self._expect("]")
                longer = _at_index(node, index)
            else:
                self._note_read(node)
                return node
            if longer.path is None:
                self._note_read(node)
            node = longer

    def _note_read(self, node: _Node) -> None:
        if node.path is not None:
            self.reads.add(node.path)

    def _selected(self, node: _Node) -> _Node:
        name = self._name()
        if not self._accept("("):
            return _field(node, name)
        return _call(name, node, self._arguments())

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
            return _Node(
                lambda scope: token.value, text=token.value if isinstance(token.value, str) else None
            )
        if self._accept("("):
            node = self._expression()
            self._expect(")")
            return node
        if self._accept("["):
            items = self._arguments("]")
            return _list(items)
        return self._named(self._name())

    def _named(self, name: str) -> _Node:
        if name in _CONSTANTS:
            return _Node(lambda scope: _CONSTANTS[name])
        if name == "cel":
            return self._binding()
        if not self._accept("("):
            if name not in self._variables:
                raise CelError(f"unknown name {name[:60]!r}")
            shadowed = name in self._variables[1:]
            path = () if name == "device" and not shadowed else None
            return _Node(lambda scope: scope.looked_up(name), path=path)
        given = self._arguments()
        if name == "has":
            return _presence(given)
        function = FUNCTIONS.get(name)
        if function is None or len(given) != 1:
            raise CelError(f"the function {name[:60]}() with {len(given)} arguments is not supported")
        return _function(function, given[0])

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
        return _bound(name, value, inner)


# -- evaluation ----------------------------------------------------------------------------------------------------


def _joined(parts: list[_Node], *, decisive: bool) -> _Node:
    """|| (decided by a true operand) or && (by a false one); an error counts only if nothing decides."""

    def evaluate(scope: Scope) -> Value:
        failure: CelError | None = None
        for part in parts:
            scope.meter.spend(1)
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
        scope.meter.spend(1 + weight(one) + weight(other))
        if sign == "in":
            return contains(other, one)
        if sign in _ORDERS:
            return _ORDERS[sign](ordered(one, other))
        return equal(one, other) is (sign == "==")

    return _node(evaluate, left, right)


def _field(node: _Node, name: str) -> _Node:
    inner = node.evaluate

    def evaluate(scope: Scope) -> Value:
        scope.meter.spend(1)
        return field_of(inner(scope), name)

    return _node(evaluate, node, field=(inner, name), path=node.below(name))


def _at_index(node: _Node, index: _Node) -> _Node:
    def evaluate(scope: Scope) -> Value:
        scope.meter.spend(1)
        return indexed(node.evaluate(scope), index.evaluate(scope))

    return _node(evaluate, node, index, path=node.below(index.text))


def _call(name: str, node: _Node, given: list[_Node]) -> _Node:
    if name == "matches" and len(given) == 1:
        return _match(node, given[0])
    return _node(
        lambda scope: called(name, node.evaluate(scope), [one.evaluate(scope) for one in given], scope.meter),
        node,
        *given,
    )


def _match(node: _Node, pattern: _Node) -> _Node:
    """`a.matches(b)`; a literal pattern is compiled with the expression."""
    known = None if pattern.text is None else pattern_of(pattern.text)

    def evaluate(scope: Scope) -> Value:
        text = node.evaluate(scope)
        if known is not None:
            return matches(text, known, scope.meter)
        given = pattern.evaluate(scope)
        scope.meter.spend(PATTERN_WORK)
        return matches(text, pattern_of(given), scope.meter)

    return _node(evaluate, node, pattern)


def _function(function: Callable[[Value], Value], given: _Node) -> _Node:
    def evaluate(scope: Scope) -> Value:
        value = given.evaluate(scope)
        scope.meter.spend(1 + weight(value))
        return function(value)

    return _node(evaluate, given)


def _bound(name: str, value: _Node, inner: _Node) -> _Node:
    def evaluate(scope: Scope) -> Value:
        scope.meter.spend(1 + len(scope.values))
        return inner.evaluate(scope.with_value(name, _outcome(value, scope)))

    return _node(evaluate, value, inner)


def _list(items: list[_Node]) -> _Node:
    def evaluate(scope: Scope) -> Value:
        scope.meter.spend(1 + len(items))
        return [element(item.evaluate(scope)) for item in items]

    return _node(evaluate, *items)


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
