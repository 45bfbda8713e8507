"""Whether the config maps that a pod needs to start exist, for KAI's `predicates`."""

from maniple.cluster.classes import TaskClass
from maniple.framework.session import Session
from maniple.objects.config_maps import required_config_maps
from maniple.objects.core import ConfigMap, Pod


class ConfigMaps:
    """For one session."""

    def __init__(self, session: Session) -> None:
        self._known = session.cluster.all(ConfigMap)
        self._listed = ConfigMap not in session.cluster.unlisted
        self._of_kind: dict[int, str] = {}  # by kind of spec

    def problem(self, class_: TaskClass) -> str:
        """The config maps that a pod lacks; empty if there is none, or if config maps may not be listed."""
        if not self._listed:
            return ""
        kind = class_.spec.kind
        if kind not in self._of_kind:
            self._of_kind[kind] = self._missing(class_.spec.pod)
        return self._of_kind[kind]

    def _missing(self, pod: Pod) -> str:
        namespace = pod.metadata.namespace or "default"
        missing = [name for name in required_config_maps(pod) if f"{namespace}/{name}" not in self._known]
        return f"Missing required configmaps: [{' '.join(missing)}]" if missing else ""
