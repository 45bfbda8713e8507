"""What is compiled: every `.pyx` file below `src`. All else about the package is in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup

SOURCE = Path("src")
# No multiplication and addition in one step: a score is the same on every kind of processor. And nothing in the files
# that depends on where they were built.
FLAGS = ["-O3", "-ffp-contract=off", "-g0"]


def extension(file: Path) -> Extension:
    name = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
    return Extension(name, [str(file)], extra_compile_args=FLAGS)


setup(ext_modules=[*map(extension, sorted(SOURCE.rglob("*.pyx")))])
