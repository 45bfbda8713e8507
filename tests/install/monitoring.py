"""The two custom resources of the Prometheus operator, as far as the chart uses them.

The fields are declared and nothing else is let in, so that the server refuses one that is spelled wrong.
"""

from typing import Any

Raw = dict[str, Any]
_TEXT: Raw = {"type": "string"}
_TEXTS: Raw = {"type": "object", "additionalProperties": _TEXT}


def _struct(**fields: Raw) -> Raw:
    return {"type": "object", "properties": fields}


def _list(items: Raw) -> Raw:
    return {"type": "array", "items": items}


_SECRET = _struct(name=_TEXT, key=_TEXT)
_ENDPOINT = _struct(
    port=_TEXT,
    path=_TEXT,
    interval=_TEXT,
    scheme=_TEXT,
    honorLabels={"type": "boolean"},
    bearerTokenFile=_TEXT,
    authorization=_struct(type=_TEXT, credentials=_SECRET),
    tlsConfig=_struct(insecureSkipVerify={"type": "boolean"}, caFile=_TEXT, serverName=_TEXT),
)
_RULE = _struct(alert=_TEXT, expr=_TEXT, labels=_TEXTS, annotations=_TEXTS, **{"for": _TEXT})
_SPECS = {
    "ServiceMonitor": _struct(selector=_struct(matchLabels=_TEXTS), endpoints=_list(_ENDPOINT)),
    "PrometheusRule": _struct(groups=_list(_struct(name=_TEXT, interval=_TEXT, rules=_list(_RULE)))),
}


def definitions() -> list[Raw]:
    return [_definition(kind, spec) for kind, spec in _SPECS.items()]


def _definition(kind: str, spec: Raw) -> Raw:
    plural = f"{kind.lower()}s"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }
