"""Names of resources are words, as an API server demands: they become rows, columns and parts of messages."""

import pytest

from maniple.objects.load import load_all


@pytest.mark.parametrize("name", ["x.y/a\nb", "x.y/\x1b[2J", "a b", "x.y/\u202eb"])
def test_a_resource_whose_name_is_not_a_word_is_refused(name: str) -> None:
    container = {"name": "c", "image": "i:1", "resources": {"requests": {name: "1"}}}
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    loaded, (problem,) = load_all([raw])
    assert loaded == []
    assert problem.field == "spec.containers[0].resources.requests"
    assert str(problem).endswith(f"must not contain spaces or control characters: {name!a}")


def test_the_longest_name_that_kubernetes_allows_is_read() -> None:
    amounts = {f"{'a' * 253}/{'b' * 63}": "1"}
    raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": amounts}}
    assert load_all([raw])[1] == []
