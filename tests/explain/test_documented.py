"""The Python of docs/plan.md runs, and prints what the page says."""

import re
from pathlib import Path
from typing import Any

import pytest

import maniple
from tests.explain.scenes import NOW, Scene

PAGE = Path(__file__).parents[2] / "docs" / "plan.md"


def blocks() -> list[str]:
    text = PAGE.read_text(encoding="utf-8").partition("### Planning again after a change")[2]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_what_the_page_shows_runs(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene("maniple").node("n0").node("n1").queue(quota=4)
    scene.job("r0", 2, on=("n0",), age=900).job("r1", 1, on=("n1",), age=900).job("train", 3)
    pod = next(one for one in scene.objects if one["metadata"]["name"] == "train-0")
    node = {**scene.objects[2], "metadata": {**scene.objects[2]["metadata"], "name": "n2"}}
    names: dict[str, Any] = {
        "maniple": maniple,
        "objects": scene.objects,
        "now": NOW,
        "changed_pod": pod,
        "new_node": node,
        "old_pod": pod,
    }
    first, second = blocks()
    exec(first, names)
    assert len(names["plan"].binds) == 0
    names["planner"].delete(names["cluster"], [node])
    names["planner"].apply(names["cluster"], [pod])
    exec(second, names)
    shown = [line.removeprefix("# ") for line in second.splitlines() if line.startswith("# ")]
    assert set(shown) <= set(capsys.readouterr().out.splitlines())
    assert names["better"].jobs["ml/train"].placed
