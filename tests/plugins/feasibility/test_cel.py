"""Device selectors: what they mean, what is refused, and that nothing else than a refusal ever comes of a text."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maniple.cluster.patterns import _compiled
from maniple.plugins.feasibility.cel import MOST_WORK, Expression, Path, compiled
from maniple.plugins.feasibility.cel_tokens import CelError
from maniple.plugins.feasibility.cel_values import ByDomain, Device, Quantity, Version

GPU = Device(
    "gpu.example.com",
    ByDomain(
        {
            "gpu.example.com": {
                "model": "A100-SXM4",
                "index": 3,
                "healthy": True,
                "old": False,
                "version": Version.read("1.10.0"),
            },
            "other.example.com": {"model": "x"},
        }
    ),
    ByDomain({"gpu.example.com": {"memory": Quantity.read("40Gi")}}),
)
OWN = 'device.attributes["gpu.example.com"]'
MEMORY = 'device.capacity["gpu.example.com"].memory'


def holds(text: str) -> bool:
    expression = compiled(text)
    assert isinstance(expression, Expression), expression
    return expression.holds(GPU)


def problem(text: str) -> str:
    """Why a text has no value, at whichever time that shows."""
    expression = compiled(text)
    if isinstance(expression, CelError):
        return str(expression)
    with pytest.raises(CelError) as raised:
        expression.holds(GPU)
    return str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        'device.driver == "gpu.example.com"',
        "device.driver == 'gpu.example.com' && true",
        f'{OWN}.model == "A100-SXM4"',
        f'{OWN}["model"] != "H100"',
        f"{OWN}.healthy",
        f"!{OWN}.old",
        f"!!{OWN}.healthy",
        f"{OWN}.index >= 3 && {OWN}.index < 4 && {OWN}.index <= 3 && {OWN}.index > -1",
        f"{OWN}.index == 3.0",
        f'{OWN}.model in ["H100", "A100-SXM4"]',
        f'"model" in {OWN}',
        f'!("speed" in {OWN})',
        f'{OWN}.model.startsWith("A100") && {OWN}.model.endsWith("SXM4") && {OWN}.model.contains("0-S")',
        f'{OWN}.model.matches("^A[0-9]+-(SXM|PCI)")',
        f'{OWN}.model.lowerAscii() == "a100-sxm4"',
        f"has({OWN}.model) && !has({OWN}.speed)",
        '!has(device.attributes["nobody.example.com"].model)',
        f'{MEMORY} >= quantity("40Gi") && {MEMORY} < quantity("41Gi")',
        f'{MEMORY}.compareTo(quantity("39Gi")) > 0 && {MEMORY}.compareTo(quantity("40Gi")) == 0',
        f'{MEMORY}.isGreaterThan(quantity("1")) && !{MEMORY}.isLessThan(quantity("1"))',
        f'{MEMORY} == quantity("40960Mi")',
        f'{OWN}.version.isGreaterThan(semver("1.9.3"))',
        f'{OWN}.version.compareTo(semver("1.10.0-rc.1")) == 1 && {OWN}.version.minor() == 10',
        'isQuantity("1Gi") && !isQuantity("lots") && isSemver("1.0.0") && !isSemver("1.0")',
        f'cel.bind(own, {OWN}, own.healthy && own.model == "A100-SXM4")',
        f"{OWN}.healthy ? true : {OWN}.speed > 1",
        f"size({OWN}.model) == 9 && {OWN}.model.size() == 9",
        '"a" < "b" && "\\x41\\u0042\\n" == "AB\\n" && r"\\d" == "\\\\d"',
        "// a remark\n device.driver != '' // and another",
        "0x10 == 16 && 1e3 == 1000 && 5u == 5",
        '"""it\'s "so" """ == \'it\\\'s "so" \'',
        "true || false && false",
        "[1, 2,] == [1, 2]",
        "!device.allowMultipleAllocations",
    ],
)
def test_what_holds(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text", [f"{OWN}.healthy == 1", "null == false", '1 == "1"', "[true] == [1]", f"{OWN}.model == 3"]
)
def test_values_of_different_kinds_are_not_equal(text: str) -> None:
    assert not holds(text)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (f"{OWN}.speed > 1 && false", False),
        (f"false && {OWN}.speed > 1", False),
        (f"{OWN}.speed > 1 || true", True),
        (f"true || {OWN}.speed > 1", True),
        (f"cel.bind(unused, {OWN}.speed, true)", True),
    ],
)
def test_a_part_that_fails_does_not_matter_when_another_decides(text: str, outcome: bool) -> None:
    assert holds(text) is outcome


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('device.attributes["some-driver"].healthy', "no such key: healthy"),
        (f"{OWN}.speed > 1 && true", "no such key: speed"),
        (f"{OWN}.speed > 1 || false", "no such key: speed"),
        (f"{OWN}.model", "string where true or false"),
        (f"{OWN}.model && true", "not true or false"),
        (f"{OWN}.index < 'a'", "cannot be compared"),
        (f"{MEMORY} > 3", "cannot be compared"),
        ('quantity("lots") == quantity("1")', "not a quantity"),
        ('semver("1") == semver("1.0.0")', "not a semantic version"),
        ("device.name == 'a'", "no field 'name'"),
        ("device.driver == ", "unexpected the end"),
        ("device.driver = 'a'", "'='"),
        ("(true", "unexpected the end"),
        ("true)", "unexpected ')'"),
        ("pod.name == 'a'", "unknown name 'pod'"),
        ("'open", "does not end"),
        ("'\\q' == 'q'", "not a valid escape"),
        ("1 + 1 == 2", "'+'"),
        ("has(device)", "has() needs a field"),
        ("eval('1')", "eval() with 1"),
        ("device.driver.format()", "format() of a string"),
        ("'a'.matches('(')", "regular expression"),
        ("99999999999999999999 == 1", "too large"),
        ("[1][1] == 1", "index out of range"),
        ("[[1]] == [[1]]", "a list in a list"),
        (f"'{'a' * 1025}'.matches('a')", "at most 1024 characters"),
        ("__import__('os')", "not supported"),
        ("device.__class__ == 1", "no field"),
        ("(" * 400 + "true" + ")" * 400, "too deeply nested"),
        ("device" + ".a" * 400, "too deeply nested"),
        ("true" + " " * 11_000, "longer than"),
    ],
)
def test_what_cannot_be_evaluated_says_why(text: str, words: str) -> None:
    assert words in problem(text)


def test_binding_cannot_double_the_work() -> None:
    doubled = "".join(f"cel.bind(x{i + 1}, [x{i}, x{i}], " for i in range(1, 40))
    assert "a list in a list" in problem(f"cel.bind(x1, 1, {doubled}x40 == x40{')' * 40}")


@pytest.mark.parametrize(
    "text",
    [
        f"cel.bind(x, [{','.join('1' * 2000)}], {' && '.join(['x == x'] * 500)})",
        f"cel.bind(x, [{','.join('1' * 2000)}], {' || '.join(['2 in x'] * 500)})",
        f"cel.bind(x, '{'a' * 4000}', {' || '.join([chr(39) + 'b' + chr(39) + '.contains(x)'] * 300)})",
        f"cel.bind(x, '{'a' * 1000}', {' || '.join([f'x.matches({chr(39)}(a?){{300}}b{chr(39)})'] * 100)})",
        " || ".join(f"'a'.matches({OWN}.healthy ? 'b{number}' : 'c')" for number in range(100)),
    ],
    ids=["equality", "membership", "contains", "matches", "patterns that are not literal"],
)
def test_work_counts_by_the_size_of_what_is_looked_at(text: str) -> None:
    assert f"takes more than {MOST_WORK} units of work on a device" in problem(text)


def test_work_that_is_too_much_is_not_an_error_that_another_operand_could_make_up_for() -> None:
    long = f"cel.bind(x, [{','.join('1' * 2000)}], {' && '.join(['x == x'] * 500)})"
    assert "units of work" in problem(f"{long} || true")
    assert holds(f"true || {long}")


def test_the_longest_texts_without_such_values_are_never_too_much() -> None:
    for part, sign in ((f"{OWN}.index == 3", " && "), ("1 in [1, 2, 3]", " && "), (f"{OWN}.old", " || ")):
        text = sign.join([part] * ((10 * 1024) // len(part + sign)))
        assert holds(text) is (sign == " && ")


def test_a_pattern_is_compiled_once_even_if_it_is_wrong() -> None:
    expression = compiled("'a'.matches('(a{900}){2}')")
    assert isinstance(expression, Expression)
    before = _compiled.cache_info().misses
    for _ in range(5):
        with pytest.raises(CelError, match="not a valid regular expression"):
            expression.holds(GPU)
    assert _compiled.cache_info().misses == before


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("true", set()),
        ("device.driver == 'a' || device.allowMultipleAllocations", {("driver",), ("allowMultipleAllocations",)}),
        (f"{OWN}.model == 'a'", {("attributes", "gpu.example.com", "model")}),
        (f"{OWN}['model'].startsWith('a')", {("attributes", "gpu.example.com", "model")}),
        (f"has({OWN}.model) && {MEMORY} > quantity('1')",
         {("attributes", "gpu.example.com", "model"), ("capacity", "gpu.example.com", "memory")}),
        (f"'model' in {OWN}", {("attributes", "gpu.example.com")}),
        (f"cel.bind(own, {OWN}, own.model == 'a')", {("attributes", "gpu.example.com")}),
        ("device.attributes[device.driver].model == 'a'", {("attributes",), ("driver",)}),
        ("cel.bind(d, device, d.driver == 'a')", {()}),
        ("cel.bind(device, 'a', device == 'a')", set()),
        (f"({OWN}).model == 'a'", {("attributes", "gpu.example.com"), ("attributes", "gpu.example.com", "model")}),
    ],
)  # fmt: skip
def test_what_an_expression_reads_of_a_device(text: str, reads: set[Path]) -> None:
    expression = compiled(text)
    assert isinstance(expression, Expression)
    assert expression.reads == reads


def test_long_chains_are_no_depth() -> None:
    assert holds(" && ".join(["true"] * 1000))
    assert holds("!" * 1000 + "true")


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("1.2.3", "1.10.0"),
        ("1.0.0-alpha", "1.0.0"),
        ("1.0.0-alpha", "1.0.0-alpha.1"),
        ("1.0.0-2", "1.0.0-10"),
        ("1.0.0-10", "1.0.0-a"),
    ],
)
def test_versions_in_their_order(less: str, more: str) -> None:
    assert Version.read(less) < Version.read(more)
    assert Version.read(less + "+build") == Version.read(less)


words = (
    "device . attributes ['gpu.example.com'] model driver == != < >= && || ! ? : ( ) [ ] , in has quantity semver "
    "cel bind x '1Gi' 'a \" 1 -2 1.5 true null matches startsWith size '(a+)+$' \\ r' // 0x u é"
)
pieces = st.sampled_from([*words.split(), "\n", "\x00", "\ud800"])


@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(pieces, max_size=40).map(" ".join),
        st.lists(pieces, max_size=40).map("".join),
    )
)
@example("(" * 3000)
@example("[" * 3000)
@example("!" * 3000)
@example("-" * 3000)
@example("cel.bind(x," * 900)
@example('"' + "\\" * 3001 + '"')
@example(f"'{'a' * 60}!'.matches('(a+)+$')")
def test_any_text_gives_a_selector_or_says_what_is_wrong(text: str) -> None:
    expression = compiled(text)
    if isinstance(expression, CelError):
        assert str(expression)
        return
    with contextlib.suppress(CelError):
        assert expression.holds(GPU) in (True, False)


# Expressions that are right, beside what they come to.
leaves = st.sampled_from(
    [
        ("true", True),
        ("false", False),
        (f"{OWN}.healthy", True),
        (f"{OWN}.old", False),
        ("1 < 2", True),
        ("'a' == 'b'", False),
    ]
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: (f"({two[0][0]}) && ({two[1][0]})", two[0][1] and two[1][1])),
        st.tuples(inner, inner).map(lambda two: (f"({two[0][0]}) || ({two[1][0]})", two[0][1] or two[1][1])),
        inner.map(lambda one: (f"!({one[0]})", not one[1])),
        st.tuples(inner, inner, inner).map(
            lambda three: (
                f"({three[0][0]}) ? ({three[1][0]}) : ({three[2][0]})",
                three[1][1] if three[0][1] else three[2][1],
            )
        ),
    ),
    max_leaves=12,
)


@given(trees)
def test_logic_comes_out_as_it_would_by_hand(tree: tuple[str, bool]) -> None:
    text, outcome = tree
    assert holds(text) is outcome
