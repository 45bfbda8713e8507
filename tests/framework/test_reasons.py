"""Reasons: what several filters say of a node, and how refusals are worded."""

import numpy as np

from maniple.framework.reasons import FITS, Code, Histogram, NotWhole, ReasonTable, histogram, joined


def table() -> tuple[ReasonTable, int, int, int]:
    reasons = ReasonTable()
    passing = reasons.number("no room")
    other = reasons.number("ports taken")
    return reasons, passing, other, reasons.number("wrong zone", Code.UNRESOLVABLE)


def test_the_first_refusal_stays_but_one_that_lasts_outweighs_one_that_may_pass() -> None:
    reasons, passing, other, lasting = table()
    error = reasons.number("cannot tell", Code.ERROR)
    earlier = np.array([FITS, FITS, passing, passing, lasting, lasting, passing], dtype=np.int16)
    later = np.array([FITS, passing, FITS, other, passing, error, lasting], dtype=np.int16)
    assert reasons.merge(earlier, later).tolist() == [
        FITS,
        passing,
        passing,
        passing,
        lasting,
        lasting,
        lasting,
    ]


def test_only_plain_refusals_may_pass() -> None:
    reasons, passing, _, lasting = table()
    assert [bool(reasons.lasting()[number]) for number in (FITS, passing, lasting)] == [False, False, True]


def test_equal_reasons_have_one_number_and_codes_tell_them_apart() -> None:
    reasons, passing, _, lasting = table()
    assert reasons.number("no room") == passing
    assert reasons.number("wrong zone") != lasting


def test_refusals_are_counted_and_told_in_the_order_of_the_words() -> None:
    reasons, passing, other, lasting = table()
    told = histogram(reasons, np.array([lasting, passing, FITS, other, passing], dtype=np.int16))
    assert str(told) == "0/5 nodes are unavailable: 1 ports taken, 1 wrong zone, 2 no room"
    assert not told.hopeless
    assert histogram(reasons, np.array([passing], dtype=np.int16)).hopeless


def test_where_no_node_refuses_there_is_none_to_name() -> None:
    assert str(Histogram(3, ())) == "0/3 nodes are available"


def test_equal_words_are_said_once() -> None:
    assert joined(["a", "b", "a"]) == "a; b"


def test_a_gang_that_is_not_whole_is_told_in_plain_words() -> None:
    assert str(NotWhole("a place was found")) == "a place was found"


def test_more_reasons_than_a_column_can_number_share_the_last_ones() -> None:
    reasons = ReasonTable()
    numbers = [reasons.number(f"claim {number} waits") for number in range(40_000)]
    lasting = [reasons.number(f"claim {number} is wrong", Code.UNRESOLVABLE) for number in range(3)]
    told = np.array([*numbers, *lasting], dtype=np.int16)
    assert reasons.reasons[told[100]].text == "claim 100 waits"
    assert reasons.reasons[told[39_999]].text.startswith("another reason")
    assert reasons.lasting()[told[-4:]].tolist() == [False, True, True, True]
