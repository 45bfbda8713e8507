"""Pace: what matters at once, words after a while, numbers seldom, refused writes later each time."""

from collections.abc import Callable

from maniple.live.pace import NUMBERS_SECONDS, WORDS_SECONDS, Pace, apart


class Record(list[object]):
    """What was written. `write(x)` is something to ask a pace for."""

    def write(self, what: object = None) -> Callable[[], bool]:
        def write() -> bool:
            self.append(what)
            return True

        return write


def test_wordings_that_differ_in_numbers_are_further_apart_than_other_ones() -> None:
    assert apart("0/3 nodes", "0/14 nodes") == NUMBERS_SECONDS
    assert apart("0/3 nodes", "queue is full") == WORDS_SECONDS
    assert NUMBERS_SECONDS > WORDS_SECONDS


def test_the_first_write_and_every_one_that_matters_are_written_at_once() -> None:
    written, pace = Record(), Pace()
    assert pace.ask("a", 0.0, apart=5.0, write=written.write(1))
    assert pace.ask("a", 0.1, apart=0.0, write=written.write(2))
    assert written == [1, 2]


def test_words_wait_and_the_latest_are_written() -> None:
    written, pace = Record(), Pace()
    for number in range(4):
        pace.ask("a", number * 1.0, apart=5.0, write=written.write(number))
    assert (written, pace.next_due()) == ([0], 5.0)
    assert not pace.flush(4.9)
    assert pace.flush(5.0)
    assert (written, pace.next_due()) == ([0, 3], None)


def test_words_that_are_true_again_need_not_be_written() -> None:
    written, pace = Record(), Pace()
    pace.ask("a", 0.0, apart=5.0, write=written.write(1))
    pace.ask("a", 1.0, apart=5.0, write=written.write(2))
    pace.drop("a")
    pace.flush(100.0)
    assert written == [1]


def test_after_a_refusal_even_what_matters_waits_longer_each_time() -> None:
    written, pace, now, times = Record(), Pace(), 0.0, []
    for _ in range(4):
        if not pace.ask("a", now, apart=0.0, write=written.write()):
            now = pace.next_due() or 0.0
            assert pace.flush(now)
        times.append(now)
        pace.refused("a", now)
    assert times == [0.0, 1.0, 3.0, 7.0]
    pace.taken("a")
    pace.refused("a", 20.0)
    pace.ask("a", 20.0, apart=0.0, write=written.write())
    assert pace.next_due() == 21.0


def test_keys_do_not_wait_for_one_another() -> None:
    written, pace = Record(), Pace()
    pace.ask("a", 0.0, apart=5.0, write=written.write("a"))
    pace.ask("b", 0.1, apart=5.0, write=written.write("b"))
    assert written == ["a", "b"]
