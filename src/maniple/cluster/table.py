"""Rows with stable numbers, and columns that grow with them.

A row number stays with its object until the object is gone; then it is reused. Columns are declared once by
the class that owns them (name -> type and the value of an empty row); matrices have one such column per
resource or per status.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

_FIRST_CAPACITY = 64


class Rows:
    """Keys to row numbers. A row is held by counted users: the object itself, and objects that name it."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self.keys: list[str] = []
        self._users: list[int] = []
        self._free: list[int] = []

    def hold(self, key: str) -> int:
        """The row of a key, made if need be, with one user more."""
        row = self._index.get(key)
        if row is None:
            row = self._free.pop() if self._free else len(self.keys)
            if row == len(self.keys):
                self.keys.append(key)
                self._users.append(0)
            self.keys[row] = key
            self._index[key] = row
        self._users[row] += 1
        return row

    def release(self, row: int) -> bool:
        """One user less; True when that was the last and the row is free again."""
        self._users[row] -= 1
        if self._users[row]:
            return False
        del self._index[self.keys[row]]
        self.keys[row] = ""
        self._free.append(row)
        return True

    def index_of(self, key: str) -> int | None:
        return self._index.get(key)

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[int]:
        return iter(self._index.values())


class Table(Rows):
    """Rows plus arrays. Subclasses name their columns in `COLUMNS` and their matrices in `MATRICES` (height x rows)."""

    COLUMNS: ClassVar[dict[str, tuple[Any, Any]]] = {}
    MATRICES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, height: int = 0) -> None:
        super().__init__()
        self._capacity = _FIRST_CAPACITY
        for name, (dtype, empty) in self.COLUMNS.items():
            setattr(self, name, np.full(self._capacity, empty, dtype=dtype))
        for name in self.MATRICES:
            setattr(self, name, np.zeros((height, self._capacity), dtype=np.int64))

    def hold(self, key: str) -> int:
        row = super().hold(key)
        if row >= self._capacity:
            self._grow()
        return row

    def release(self, row: int) -> bool:
        if not super().release(row):
            return False
        for name, (_, empty) in self.COLUMNS.items():
            getattr(self, name)[row] = empty
        for name in self.MATRICES:
            getattr(self, name)[:, row] = 0
        return True

    def heighten(self, height: int) -> None:
        """Make room for dimensions that were not known when the matrices were made."""
        for name in self.MATRICES:
            matrix = getattr(self, name)
            if len(matrix) < height:
                more = np.zeros((height - len(matrix), self._capacity), dtype=np.int64)
                setattr(self, name, np.concatenate([matrix, more]))

    def reorder(self, order: list[int]) -> None:
        """Number the dimensions of the matrices anew. Sessions that are still open keep the old ones."""
        for name in self.MATRICES:
            setattr(self, name, getattr(self, name)[order])

    def _grow(self) -> None:
        added = self._capacity
        for name, (dtype, empty) in self.COLUMNS.items():
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.full(added, empty, dtype=dtype)]))
        for name in self.MATRICES:
            matrix = getattr(self, name)
            room = np.zeros((len(matrix), added), dtype=np.int64)
            setattr(self, name, np.concatenate([matrix, room], axis=1))
        self._capacity += added
