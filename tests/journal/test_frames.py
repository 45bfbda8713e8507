"""Segments: what is written is read, a torn or damaged end is cut, and only the owner may read."""

from pathlib import Path

import pytest

from maniple.journal.frames import MAGIC, NotASegmentError, Place, Segment, Torn, records, segments

RECORDS = [b"first", b"", b"x" * 100_000, bytes(range(256)) * 50, b"last"]


def written(path: Path) -> Path:
    segment = Segment(path)
    for record in RECORDS:
        segment.write(record)
    segment.close()
    assert segment.size == path.stat().st_size
    return path


def test_records_come_back_in_order(tmp_path: Path) -> None:
    path = written(tmp_path / Place(1, 1).name)
    torn = Torn()
    assert [*records(path, torn)] == RECORDS
    assert torn.at is None
    assert path.stat().st_mode & 0o777 == 0o600


def test_wherever_a_segment_is_torn_the_records_before_are_there(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole").read_bytes()
    path = tmp_path / "torn"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        found = [*records(path)]
        assert found == RECORDS[: len(found)]


def test_what_follows_a_damaged_byte_is_not_read(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole").read_bytes()
    path = tmp_path / "damaged"
    for place in range(len(MAGIC), len(whole), 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        torn = Torn()
        found = [*records(path, torn)]
        assert found == RECORDS[: len(found)]
        assert len(found) < len(RECORDS)
        assert torn.at is not None


def test_another_file_is_no_segment(tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_text("something else, and long enough")
    with pytest.raises(NotASegmentError, match="not a segment"):
        next(records(path))


def test_a_journal_compressed_by_zlib_is_named_as_one(tmp_path: Path) -> None:
    path = tmp_path / "former"
    path.write_bytes(b"maniple journal\n" + bytes(30))
    with pytest.raises(NotASegmentError, match="older version"):
        next(records(path))


def test_neither_an_existing_file_nor_a_link_is_written_to(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("target", "link"):
        with pytest.raises(FileExistsError):
            Segment(tmp_path / name)
    assert target.read_text() == "precious"


def test_segments_are_sorted_by_run_and_cycle(tmp_path: Path) -> None:
    places = [Place(1, 1), Place(1, 2000), Place(2, 1), Place(10, 1)]
    for place in reversed(places):
        (tmp_path / place.name).touch()
    (tmp_path / "notes.txt").touch()
    assert [Place.of(path) for path in segments(tmp_path)] == places
