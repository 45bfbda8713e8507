"""The writer: segments are bounded and each stands by itself, and no failure reaches the scheduler."""

import errno
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from maniple import journal
from maniple.journal import writer as writer_module
from maniple.journal.frames import Place, segments
from maniple.journal.records import Cycle, Settings
from maniple.journal.writer import Entry, Writer
from maniple.objects.core import Pod
from maniple.objects.meta import ObjectMeta

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
MIB = 2**20


def pods(number: int, size: int = 50) -> list[Pod]:
    """Pods that hardly compress."""
    return [
        Pod(
            metadata=ObjectMeta(
                name=f"p{index}", namespace="team", annotations={"noise": os.urandom(500).hex()}
            )
        )
        for index in range(number, number + size)
    ]


def entry(number: int, *, whole: bool = False, size: int = 50) -> Entry:
    settings = Settings("maniple") if whole else None
    return Entry(
        Cycle(cycle=number, when=WHEN, whole=whole, settings=settings), pods(0 if whole else number, size)
    )


def submit(writer: Writer, number: int, **given: Any) -> None:
    """As the recorder does it."""
    if not writer.rests:
        writer.submit(entry(number, whole=writer.needs_all, **given))
        writer.flush()


@pytest.fixture
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "REST_SECONDS", 0.0)


def test_the_oldest_segments_go_and_the_others_can_be_read(tmp_path: Path) -> None:
    writer = Writer(tmp_path, MIB, waits=True)
    for number in range(1, 101):
        submit(writer, number)
        assert sum(path.stat().st_size for path in segments(tmp_path)) <= MIB
    writer.close()
    found = segments(tmp_path)
    assert len(found) > 1
    assert Place.of(found[0]) != Place(1, 1)
    steps = [step.number for step in journal.read(tmp_path).steps()]
    assert steps == [*range(steps[0], 101)]
    assert journal.read(found[-1]).last().number == 100
    assert writer.figures.records == 100
    assert writer.figures.size == sum(path.stat().st_size for path in found)


def test_the_next_scheduler_continues_with_a_run_of_its_own(tmp_path: Path) -> None:
    for _ in range(2):
        writer = Writer(tmp_path, waits=True)
        for number in (1, 2):
            submit(writer, number)
        writer.close()
    read = journal.read(tmp_path)
    assert [(step.run, step.number) for step in read.steps()] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert read.step(2).run == 2
    assert read.step(2, run=1).run == 1


@pytest.mark.usefixtures("no_rest")
def test_a_full_disk_is_reported_once_and_the_journal_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer, write = Writer(tmp_path, waits=True), os.write
    submit(writer, 1)

    def full(file: int, content: bytes) -> int:
        write(file, content[:10])  # some of it still fits
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("maniple.journal.frames.os.write", full)
        for number in (2, 3, 4):
            submit(writer, number)
    assert writer.failure == "No space left on device"
    for number in (5, 6):
        submit(writer, number)
    writer.close()
    assert writer.failure == ""
    assert writer.figures.failures == 3
    assert writer.figures.dropped == 3
    assert sum("cannot be written" in record.getMessage() for record in caplog.records) == 1
    steps = [step.number for step in journal.read(tmp_path).steps()]
    assert steps == [1, 5, 6]
    assert len(segments(tmp_path)) == 2


def test_after_a_failure_nothing_is_tried_for_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    writer = Writer(tmp_path / "file", waits=True)
    submit(writer, 1)
    assert writer.rests
    assert writer.figures.failures == 1
    assert caplog.records[0].levelno == logging.WARNING
    assert "scheduling goes on" in caplog.text
    writer.close()


@pytest.mark.usefixtures("no_rest")
def test_a_cluster_that_does_not_fit_says_what_to_do(tmp_path: Path) -> None:
    writer = Writer(tmp_path, MIB, waits=True)
    submit(writer, 1, size=3000)
    assert "raise --journal-size" in writer.failure
    assert segments(tmp_path) == []
    submit(writer, 2)
    writer.close()
    assert [step.number for step in journal.read(tmp_path).steps()] == [2]


def test_a_disk_that_is_too_slow_costs_cycles_and_not_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "MOST_PENDING", 2)
    writer = Writer(tmp_path)
    started = writer._start
    monkeypatch.setattr(writer, "_start", lambda: None)  # the disk stands still
    for number in range(1, 6):
        writer.submit(entry(number, whole=writer.needs_all))
    assert writer.figures.dropped == 3
    assert writer.needs_all
    started()
    writer.flush()
    writer.submit(entry(6, whole=writer.needs_all))
    writer.close()
    assert [step.number for step in journal.read(tmp_path).steps()] == [1, 2, 6]
