"""promtool accepts the alerts, each fires when it should, and none fires for a healthy pair of replicas."""

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.install.alerts import CASES, HEALTHY, Case
from tests.install.chart import CHART, ROOT, one, rendered

ALERTS = CHART / "files" / "alerts.yaml"


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return list(group["rules"])


def promtool(prometheus: Path, *words: str) -> str:
    command = [str(prometheus / "promtool"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _test(case: Case) -> dict[str, Any]:
    """Nothing else fires either: the rest is healthy."""
    series = ({} if "something_else" in case.series else HEALTHY) | case.series
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": case.at,
                "exp_samples": [{"labels": f'{{alertname="{case.alert}"}}', "value": 1}]
                if case.alert
                else [],
            }
        ],
    }


def test_each_fires_when_it_should(prometheus: Path, tmp_path: Path) -> None:
    promtool(prometheus, "check", "rules", str(ALERTS))
    file = tmp_path / "alerts_test.yaml"
    cases = (*CASES, Case("", {}, at="110m"))
    content = {"rule_files": [str(ALERTS)], "tests": [_test(case) for case in cases]}
    file.write_text(yaml.safe_dump(content))
    promtool(prometheus, "test", "rules", str(file))


def test_there_is_a_case_for_every_alert_and_a_sentence_for_the_operator() -> None:
    assert {rule["alert"] for rule in rules()} == {case.alert for case in CASES}
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert all(rule["annotations"][name] for name in ("summary", "description"))


def test_every_metric_of_an_alert_is_on_the_page() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for rule in rules():
        for name in re.findall(r"maniple_\w+", rule["expr"]):
            assert f"`{re.sub('_bucket$', '', name)}`" in page, name


def test_the_operator_gets_the_same_rules(helm: Path) -> None:
    item = one(rendered(helm, {"prometheusRule": {"enabled": True}}), "PrometheusRule")
    assert item["spec"]["groups"][0]["rules"] == rules()
