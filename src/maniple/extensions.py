"""Third-party plugins and actions: found in installed packages and in a folder, and loaded.

Called by the commands, and for `maniple.plan` like this: `plan(..., options={"extensions": load(folder)})`.
This is the one place that imports code found at run time. A folder or a file that another user could change is not
loaded. An error in a file or an entry point costs that one alone: it is named in `problems`, which every plan made
with these extensions repeats among its warnings.
"""

import importlib.util
import inspect
import os
import stat
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from maniple.framework.configuration.registry import Extensions
from maniple.framework.points import POINTS

PLUGIN_GROUP = "maniple.plugins"
ACTION_GROUP = "maniple.actions"
_MODULE_PREFIX = "maniple_extension_"
_ROOT = 0


def load(folder: Path | str | None = None, *, installed: bool = True) -> Extensions:
    """Everything that installed packages declare as entry points, and then what is in the folder."""
    shelf = _Found()
    if installed:
        shelf.add_entry_points(PLUGIN_GROUP, shelf.plugins)
        shelf.add_entry_points(ACTION_GROUP, shelf.actions)
    if folder is not None:
        shelf.add_folder(Path(folder))
    return Extensions(dict(shelf.plugins), dict(shelf.actions), tuple(shelf.problems))


class _Found:
    """What has been found so far; the first of a name stays."""

    def __init__(self) -> None:
        self.plugins: dict[str, Any] = {}
        self.actions: dict[str, Any] = {}
        self.problems: list[str] = []

    def add_entry_points(self, group: str, kept: dict[str, Any]) -> None:
        for entry in _in_order(entry_points(group=group)):
            where = f"entry point {entry.name!r} of {group}"
            found = self._attempt(where, entry.load)
            if found is None:
                continue
            if inspect.isclass(found):
                self._keep(where, entry.name, found, kept)
            else:
                self.problems.append(f"{where}: {entry.value} is not a class; left out")

    def add_folder(self, folder: Path) -> None:
        try:
            _check_safe(folder)
            files = sorted(
                file for file in folder.iterdir() if file.suffix == ".py" and file.name[0] not in "_."
            )
        except OSError as error:
            self.problems.append(f"{folder}: {error.strerror or error}; left out")
            return
        for file in files:
            module = self._attempt(str(file), partial(_import, folder, file))
            if module is not None:
                self._add_classes(str(file), module)

    def _add_classes(self, where: str, module: ModuleType) -> None:
        """Classes with a `name` defined in this file: with `run` an action, else a plugin."""
        named = [
            (name, class_)
            for class_ in vars(module).values()
            if inspect.isclass(class_)
            and class_.__module__ == module.__name__
            and isinstance(name := getattr(class_, "name", None), str)
        ]
        for name, class_ in named:
            self._keep(where, name, class_, self.actions if _runs(class_) else self.plugins)
        if not named:
            self.problems.append(
                f"{where}: has no class with a name, so neither a plugin nor an action; left out"
            )

    def _keep(self, where: str, name: str, class_: type, kept: dict[str, Any]) -> None:
        problem = ""
        if name in kept:
            problem = f"{name!r} exists already"
        elif kept is self.actions and not _runs(class_):
            problem = f"class {class_.__name__} is not an action: it has no method run"
        elif kept is self.plugins and not any(callable(getattr(class_, point, None)) for point in POINTS):
            problem = f"class {class_.__name__} is not a plugin: no method has the name of an extension point"
        if problem:
            self.problems.append(f"{where}: {problem}; left out")
        else:
            kept[name] = class_

    def _attempt(self, where: str, action: Callable[[], Any]) -> Any:
        """The action's result, or None and a problem.

        Third-party code may raise anything, and may even try to exit.
        """
        try:
            return action()
        except PermissionError as error:
            self.problems.append(f"{where}: {error.strerror or error}; left out")
            return None
        except (Exception, SystemExit) as error:
            said = " ".join(str(error).split())
            self.problems.append(f"{where}: {type(error).__name__}{': ' if said else ''}{said}; left out")
            return None


def _runs(class_: type) -> bool:
    return callable(getattr(class_, "run", None))


def _in_order(entries: Iterable[EntryPoint]) -> list[EntryPoint]:
    """By name, then by target, independent of where packages are installed."""
    return sorted(entries, key=lambda entry: (entry.name, entry.value))


def _check_safe(place: Path) -> None:
    """Raise PermissionError if another user could change what is there.

    What is mounted read-only cannot be changed, whatever its mode: that of a ConfigMap's volume is open to all.
    """
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return
    found = place.stat()
    if found.st_uid not in (_ROOT, os.geteuid()):
        raise PermissionError(
            f"belongs to user {found.st_uid}, who could change it; it must belong to root or to user {os.geteuid()}"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        raise PermissionError(f"other users can write to it (mode {mode:04o}); remove that with chmod go-w")


def _check_file(folder: Path, file: Path) -> None:
    """Raise PermissionError unless the file and the folders on the way to it are in the folder, and safe."""
    top, found = folder.resolve(), file.resolve()
    if not found.is_relative_to(top):
        raise PermissionError(
            f"a symbolic link that leads out of the folder, to {found}; copy the file instead"
        )
    for place in (found, *found.parents):
        if place == top:
            break
        _check_safe(place)


class _Loader(SourceFileLoader):
    """Reads the source alone: bytecode kept beside it could be that of somebody else."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _import(folder: Path, file: Path) -> ModuleType:
    """The file as a module of its own, which neither shadows an installed one nor is shadowed by it."""
    _check_file(folder, file)
    name = _MODULE_PREFIX + file.stem
    spec = importlib.util.spec_from_file_location(name, file, loader=_Loader(name, str(file)))
    if spec is None or spec.loader is None:
        raise ImportError("cannot be read as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
