"""Selections: one evaluation for devices that are equal in what is read of them, and never a wrong one."""

from hypothesis import given
from hypothesis import strategies as st

from maniple.objects import dra
from maniple.objects.meta import ObjectMeta
from maniple.plugins.feasibility.cel_values import ByDomain, Device, Quantity, Value, Version
from maniple.plugins.feasibility.selections import Flaw, Match, Selection

CLASS = dra.DeviceClass(metadata=ObjectMeta(name="c"))
DOMAIN = "d.example.com"


def selection(*expressions: str, device_class: dra.DeviceClass | None = CLASS) -> Selection:
    selectors = tuple(dra.DeviceSelector(cel=dra.CelSelector(expression=one)) for one in expressions)
    return Selection(device_class, dra.DeviceDemand(device_class_name="c", selectors=selectors))


def device(driver: str = DOMAIN, capacity: int = 1, *, multiple: bool = False, **attributes: Value) -> Device:
    amounts = ByDomain({DOMAIN: {"memory": Quantity(capacity)}})
    return Device(driver, ByDomain({DOMAIN: attributes}), amounts, multiple)


def matches(made: Selection, *devices: Device) -> list[Match]:
    return [made.match((DOMAIN, "pool", f"d{place}"), one) for place, one in enumerate(devices)]


def answers(made: Selection, *devices: Device) -> list[bool | Flaw]:
    return [one.answer for one in matches(made, *devices)]


OWN = f"device.attributes['{DOMAIN}']"


def test_devices_that_differ_in_something_else_share_a_match() -> None:
    some = [device(model="a", uuid=f"u{number}", capacity=number) for number in range(5)]
    assert len(set(matches(selection(f"{OWN}.model == 'a'"), *some))) == 1
    assert len(set(matches(selection(f"{OWN}.uuid == 'a'"), *some))) == 5


def test_a_failure_is_kept_like_an_outcome() -> None:
    found = matches(selection(f"{OWN}.speed > 1"), device(model="a"), device(model="b"))
    assert found[0] is found[1]
    assert isinstance(found[0].answer, Flaw)


def test_values_of_different_types_are_different_cases() -> None:
    made = selection(f"{OWN}.x == 1")
    assert answers(made, device(x=1), device(x=True), device(x="1"), device())[:3] == [True, False, False]
    by_domain = selection(f"cel.bind(own, {OWN}, own.x == 1)")
    assert answers(by_domain, device(x=True), device(x=1)) == [False, True]


def test_without_its_class_a_request_matches_nothing() -> None:
    assert answers(selection(device_class=None), device()) == [False]


def test_a_selection_is_compiled_when_it_has_to_be() -> None:
    assert selection("(").work > 0
    assert isinstance(answers(selection("("), device())[0], Flaw)


paths = st.sampled_from(
    [
        f"{OWN}.x",
        f"{OWN}['y']",
        f"({OWN}).x",
        "device.driver",
        "device.allowMultipleAllocations",
        "device.attributes[device.driver].x",
        f"device.capacity['{DOMAIN}'].memory",
        f"has({OWN}.y)",
        f"'x' in {OWN}",
        f"'{DOMAIN}' in device.attributes",
        f"cel.bind(own, {OWN}, own.y)",
        "cel.bind(device, 'a', device)",
        "1",
        "'a'",
        "true",
        "quantity('2')",
        f"size({OWN})",
        "null",
    ]
)
comparisons = st.tuples(paths, st.sampled_from(["==", "!=", "<", "in"]), paths).map(" ".join)
expressions = st.lists(st.one_of(comparisons, paths), min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from([" && ", " || "]).map(lambda sign: sign.join(f"({one})" for one in parts))
)
values = st.sampled_from([0, 1, True, False, "a", "1", Version.read("1.0.0")])
devices = st.builds(
    lambda driver, capacity, multiple, attributes: device(driver, capacity, multiple=multiple, **attributes),
    st.sampled_from([DOMAIN, "other"]),
    st.integers(1, 2),
    st.booleans(),
    st.dictionaries(st.sampled_from(["x", "y"]), values),
)


@given(st.lists(expressions, min_size=1, max_size=2), st.lists(devices, max_size=8))
def test_what_is_shared_is_what_each_device_would_get_by_itself(texts: list[str], some: list[Device]) -> None:
    alone = [answers(selection(*texts), one)[0] for one in some]
    assert answers(selection(*texts), *some) == alone
