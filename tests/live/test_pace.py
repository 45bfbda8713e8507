"""Pace: what matters at once, words after a while, numbers seldom, refused writes later each time."""

from maniple.live.pace import NUMBERS_SECONDS, WORDS_SECONDS, Pace, apart


class Bench:
    """A pace with a record of what was written and when."""

    def __init__(self, words_a_second: int = 100) -> None:
        self.written: list[tuple[float, str, int]] = []
        self.now = 0.0
        self.pace: Pace[str, int] = Pace(self._write, words_a_second)

    def _write(self, key: str, value: int) -> bool:
        self.written.append((self.now, key, value))
        return True

    def submit(self, now: float, key: str, value: int, apart: float) -> bool:
        self.now = now
        self.pace.submit(key, value, apart)
        return self.pace.carry_out(now)

    def wait(self) -> None:
        """Until the next thing is due."""
        due = self.pace.next_due()
        assert due is not None
        self.now = due
        self.pace.carry_out(due)


def test_wordings_that_differ_in_numbers_are_further_apart_than_other_ones() -> None:
    assert apart("0/3 nodes", "0/14 nodes") == NUMBERS_SECONDS
    assert apart("0/3 nodes", "queue is full") == WORDS_SECONDS
    assert NUMBERS_SECONDS > WORDS_SECONDS


def test_nothing_is_written_before_everything_has_been_asked_for() -> None:
    bench = Bench()
    bench.pace.submit("a", 1)
    assert bench.written == []
    assert bench.pace.carry_out(0.0)
    assert bench.written == [(0.0, "a", 1)]


def test_the_first_write_and_every_one_that_matters_are_written_at_once() -> None:
    bench = Bench()
    assert bench.submit(0.0, "a", 1, apart=5.0)
    assert bench.submit(0.1, "a", 2, apart=0.0)
    assert [value for _, _, value in bench.written] == [1, 2]


def test_words_wait_and_the_latest_are_written() -> None:
    bench = Bench()
    for number in range(4):
        bench.submit(number * 1.0, "a", number, apart=5.0)
    assert bench.written == [(0.0, "a", 0)]
    assert not bench.pace.carry_out(4.9)
    bench.wait()
    assert bench.written == [(0.0, "a", 0), (5.0, "a", 3)]
    assert bench.pace.next_due() is None


def test_what_matters_overtakes_words_that_wait() -> None:
    bench = Bench()
    bench.submit(0.0, "a", 1, apart=5.0)
    bench.submit(1.0, "a", 2, apart=5.0)
    bench.submit(2.0, "a", 3, apart=0.0)
    assert bench.pace.next_due() is None
    assert [value for _, _, value in bench.written] == [1, 3]


def test_words_that_are_true_again_need_not_be_written() -> None:
    bench = Bench()
    bench.submit(0.0, "a", 1, apart=5.0)
    bench.submit(1.0, "a", 2, apart=5.0)
    bench.pace.drop("a")
    assert bench.pace.next_due() is None
    assert not bench.pace.carry_out(100.0)


def test_only_so_many_words_are_written_in_a_second_and_none_is_lost() -> None:
    bench = Bench(words_a_second=10)
    for number in range(25):
        bench.pace.submit(f"pod-{number}", number, apart=5.0)
    bench.pace.carry_out(0.0)
    assert len(bench.written) == 10
    assert bench.submit(0.5, "urgent", 99, apart=0.0), "what matters does not stand in line"
    bench.wait()
    assert len(bench.written) == 21
    bench.wait()
    assert sorted({value for _, _, value in bench.written}) == [*range(25), 99]
    assert bench.now == 2.0


def test_after_a_refusal_even_what_matters_waits_longer_each_time() -> None:
    bench, times = Bench(), []
    for _ in range(4):
        if not bench.submit(bench.now, "a", 1, apart=0.0):
            bench.wait()
        times.append(bench.now)
        bench.pace.refused("a", bench.now)
    assert times == [0.0, 1.0, 3.0, 7.0]
    bench.pace.taken("a")
    bench.pace.refused("a", 20.0)
    bench.submit(20.0, "a", 1, apart=0.0)
    assert bench.pace.next_due() == 21.0


def test_keys_do_not_wait_for_one_another() -> None:
    bench = Bench()
    bench.submit(0.0, "a", 1, apart=5.0)
    bench.submit(0.1, "b", 2, apart=5.0)
    assert [key for _, key, _ in bench.written] == ["a", "b"]
    assert bench.pace.recent("a", 4.0, 5.0)
    assert not bench.pace.recent("a", 6.0, 5.0)
