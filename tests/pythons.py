"""Run tests on every supported Python that this machine has: `make test-pythons`.

Each version gets an environment of its own below build/pythons. Versions that are not here are named, so that a run
never looks more complete than it was.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
ROOT = Path(__file__).parent.parent


def main(tests: list[str]) -> int:
    outcomes = {version: _outcome(version, tests) for version in VERSIONS}
    for version, outcome in outcomes.items():
        sys.stdout.write(f"Python {version}: {outcome}\n")
    return int("failed" in outcomes.values() or "passed" not in outcomes.values())


def _outcome(version: str, tests: list[str]) -> str:
    python = find(version)
    if python is None:
        return "not here, NOT TESTED"
    own = _environment(version, python)
    variables = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [own, "-m", "pytest", "-q", "-n", "2", "-m", "not hypothesis and not long", *tests]
    return (
        "passed"
        if subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode == 0
        else "failed"
    )


def find(version: str) -> str | None:
    """An interpreter of that version that runs: on the path, or installed by pyenv or uv."""
    installed = [
        *Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}*/bin/python"),
        *(Path.home() / ".local/share/uv/python").glob(f"cpython-{version}*/bin/python3"),
    ]
    for python in filter(None, [shutil.which(f"python{version}"), *map(str, sorted(installed))]):
        asked = "import sys; print('%d.%d' % sys.version_info[:2])"
        found = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
        if found.stdout.strip() == version:
            return python
    return None


def _environment(version: str, python: str) -> str:
    folder = ROOT / "build" / "pythons" / version
    own = str(folder / "bin" / "python")
    compiled = [file for suffix in ("pyx", "pxd") for file in (ROOT / "src").rglob(f"*.{suffix}")]
    wanted = [ROOT / "pyproject.toml", ROOT / "requirements.lock", ROOT / "setup.py", *compiled]
    ready = folder / ".ready"
    if not ready.exists() or ready.stat().st_mtime < max(one.stat().st_mtime for one in wanted):
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
        install = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        locked = ["--require-hashes", "--requirement", "requirements.lock"]
        itself = ["--no-index", "--no-deps", "--no-build-isolation", "--editable", "."]
        for what in (locked, itself):
            subprocess.run([*install, *what], cwd=ROOT, check=True)
        ready.touch()
    return own


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
