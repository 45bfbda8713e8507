"""The cluster's description of its cards, from a ConfigMap: MIG geometries, vNPU templates, resource names.

Read from key `device-config.yaml` of the ConfigMap that deviceshare's arguments name; without one the
defaults apply. A text that cannot be parsed is reported, and the defaults apply as well. Read once per text.
"""

from functools import lru_cache
from typing import Any

import msgspec

from maniple.framework.configuration.compose import ComposeError, compose
from maniple.framework.session import Session
from maniple.objects.core import ConfigMap
from maniple.objects.meta import Count, Record

KEY = "device-config.yaml"
VGPU_NUMBER = "volcano.sh/vgpu-number"
VGPU_MEMORY = "volcano.sh/vgpu-memory"
VGPU_CORES = "volcano.sh/vgpu-cores"
VGPU_PERCENTAGE = "volcano.sh/vgpu-memory-percentage"
_MOST_INSTANCES = 64  # of one kind in a geometry; no card has nearly as many


class MigTemplate(Record, frozen=True, kw_only=True):
    name: str = ""
    memory: Count = 0
    count: Count = 0


class Geometry(Record, frozen=True, kw_only=True):
    """One way to partition a card."""

    group: str = ""
    geometries: tuple[MigTemplate, ...] = ()


class CardGeometries(Record, frozen=True, kw_only=True):
    """The ways for some models; a model is recognised by part of the card's type."""

    models: tuple[str, ...] = ()
    allowed_geometries: tuple[Geometry, ...] = ()


class NvidiaConfig(Record, frozen=True, kw_only=True):
    resource_count_name: str = ""
    resource_memory_name: str = ""
    resource_core_name: str = ""
    resource_memory_percentage_name: str = ""
    known_mig_geometries: tuple[CardGeometries, ...] = ()
    gpu_memory_factor: Count = 0

    def geometries_of(self, card_type: str) -> tuple[Geometry, ...]:
        for known in self.known_mig_geometries:
            if any(model in card_type for model in known.models):
                return known.allowed_geometries
        return ()


class NpuTemplate(Record, frozen=True, kw_only=True):
    name: str = ""
    memory: Count = 0


class NpuConfig(Record, frozen=True, kw_only=True):
    """One make of Ascend cards."""

    common_word: str
    resource_name: str = ""
    resource_memory_name: str = ""
    memory_allocatable: Count = 0
    memory_capacity: Count = 0
    templates: tuple[NpuTemplate, ...] = ()

    def rounded(self, memory: int) -> tuple[int, str] | None:
        """The smallest template that fits this much, or the whole card (no template); None if neither fits."""
        for template in sorted(self.templates, key=lambda one: one.memory):
            if memory <= template.memory:
                return template.memory, template.name
        return (self.memory_allocatable, "") if memory <= self.memory_capacity else None


class NpuConfigs(Record, frozen=True, kw_only=True):
    hami_vnpu_core: bool = False
    configs: tuple[NpuConfig, ...] = ()


class DeviceConfig(Record, frozen=True, kw_only=True):
    nvidia: NvidiaConfig = NvidiaConfig()
    vnpus: NpuConfigs = NpuConfigs()


DEFAULT = DeviceConfig(
    vnpus=NpuConfigs(
        configs=(
            NpuConfig(
                common_word="Ascend310P",
                resource_name="huawei.com/Ascend310P",
                resource_memory_name="huawei.com/Ascend310P-memory",
                memory_allocatable=21527,
                memory_capacity=24576,
                templates=(
                    NpuTemplate(name="vir01", memory=3072),
                    NpuTemplate(name="vir02", memory=6144),
                    NpuTemplate(name="vir04", memory=12288),
                ),
            ),
        )
    )
)


def device_config(session: Session, namespace: str, name: str) -> DeviceConfig:
    """The configuration of this cluster."""
    found = session.cluster.all(ConfigMap).get(f"{namespace}/{name}")
    text = None if found is None else found.data.get(KEY)
    if text is None:
        return DEFAULT
    read = _read(text)
    if isinstance(read, str):
        session.report(f"ConfigMap {namespace}/{name}: data[{KEY!r}]: {read}; the default cards are assumed")
        return DEFAULT
    return read


@lru_cache(maxsize=16)
def _read(text: str) -> DeviceConfig | str:
    """The configuration, or what is wrong with it."""
    try:
        config = msgspec.convert(_with_wrapped_npus(compose(text).value), DeviceConfig)
    except ComposeError as error:
        return error.message if error.line is None else f"line {error.line}: {error.message}"
    except msgspec.ValidationError as error:
        return str(error).replace("`", "")
    templates = (
        template
        for known in config.nvidia.known_mig_geometries
        for geometry in known.allowed_geometries
        for template in geometry.geometries
    )
    if any(template.count > _MOST_INSTANCES for template in templates):
        return f"nvidia.knownMigGeometries: more than {_MOST_INSTANCES} instances of a kind"
    return config


def _with_wrapped_npus(raw: Any) -> Any:
    """The list of cards may be at the top level, as in older versions, and null means absent."""
    if not isinstance(raw, dict):
        return {} if raw is None else raw
    given = {key: value for key, value in raw.items() if value is not None}
    if isinstance(given.get("vnpus"), list):
        given["vnpus"] = {"configs": given["vnpus"]}
    return given
