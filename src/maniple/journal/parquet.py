"""Rows of a history as a Parquet file, for those who analyse further. Needs pyarrow, which is an extra."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any


class MissingLibraryError(Exception):
    """pyarrow is not installed."""


def write(rows: Sequence[Any], file: Path) -> None:
    """Write dataclass instances of one kind; a mapping becomes a list of keys with values."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingLibraryError(
            "--export needs pyarrow, which is not installed; install it with: pip install 'maniple[parquet]'"
        ) from None
    names = [one.name for one in fields(rows[0])] if rows else []
    columns = {name: [_plain(getattr(row, name)) for row in rows] for name in names}
    types = {name: _type(pyarrow, getattr(rows[0], name)) for name in names} if rows else {}
    table = pyarrow.table(
        {name: pyarrow.array(values, types[name]) for name, values in columns.items()},
    )
    pyarrow.parquet.write_table(table, file, compression="zstd")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [*value.items()]
    return [*value] if isinstance(value, tuple) else value


def _type(pyarrow: Any, example: Any) -> Any:
    """None lets pyarrow find out; what may be empty is stated."""
    if isinstance(example, Mapping):
        return pyarrow.map_(pyarrow.string(), pyarrow.float64())
    return pyarrow.list_(pyarrow.string()) if isinstance(example, tuple) else None
