"""For every alert the series that fire it, in promtool's notation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """Samples are a minute apart; the alert fires at `at`, after its `for`."""

    alert: str
    series: dict[str, str]
    at: str = "30m"


COMMON = 'job="maniple",namespace="maniple-system",instance="a"'
# A healthy pair of replicas, one of which leads: no alert fires.
HEALTHY = {
    f"maniple_leader{{{COMMON}}}": "1x120",
    'maniple_leader{job="maniple",namespace="maniple-system",instance="b"}': "0x120",
    f"maniple_ready{{{COMMON}}}": "1x120",
    f'maniple_config_reloads_total{{{COMMON},result="ok"}}': "0+1x120",
    f'maniple_config_reloads_total{{{COMMON},result="refused"}}': "0x120",
    f'maniple_api_requests_total{{{COMMON},verb="create",resource="pods",code="201"}}': "0+600x120",
    f'maniple_api_requests_total{{{COMMON},verb="create",resource="pods",code="500"}}': "0+6x120",
    f'maniple_writes_total{{{COMMON},write="bind",result="ok"}}': "0+600x120",
    f'maniple_writes_total{{{COMMON},write="bind",result="failed"}}': "0+6x120",
    f'maniple_watch_silence_seconds{{{COMMON},resource="pods"}}': "30x120",
    f'maniple_effects_pending{{{COMMON},urgency="decision"}}': "20x120",
    f"maniple_events_dropped_total{{{COMMON}}}": "0x120",
    f'maniple_cycle_duration_seconds_bucket{{{COMMON},le="0.1"}}': "0+60x120",
    f'maniple_cycle_duration_seconds_bucket{{{COMMON},le="+Inf"}}': "0+60x120",
    f"maniple_loop_lag_seconds{{{COMMON}}}": "0x120",
    f'maniple_pending_jobs{{{COMMON},queue="a",cause="nodes"}}': "5x120",
}

CASES = (
    Case("ManipleNoLeader", {f"maniple_leader{{{COMMON}}}": "0x120"}),
    Case("ManipleNoLeader", {"something_else": "1x120"}),
    Case(
        "ManipleTwoLeaders",
        {'maniple_leader{job="maniple",namespace="maniple-system",instance="b"}': "1x120"},
    ),
    Case("ManipleNotReady", {f"maniple_ready{{{COMMON}}}": "0x120"}),
    Case("ManipleObjectsSetAside", {f'maniple_set_aside_objects{{{COMMON},kind="Pod"}}': "1x120"}),
    Case("ManipleKindForbidden", {f'maniple_forbidden_kinds{{{COMMON},kind="CSIDriver"}}': "1x120"}),
    Case(
        "ManipleConfigurationRefused",
        {f'maniple_config_reloads_total{{{COMMON},result="refused"}}': "0x20 1x100"},
    ),
    Case(
        "ManipleApiErrors",
        {f'maniple_api_requests_total{{{COMMON},verb="create",resource="pods",code="0"}}': "0+100x120"},
    ),
    Case("ManipleBindsFail", {f'maniple_writes_total{{{COMMON},write="bind",result="failed"}}': "0+100x120"}),
    Case("ManipleWatchSilent", {f'maniple_watch_silence_seconds{{{COMMON},resource="pods"}}': "0+60x120"}),
    Case("ManipleWritesPending", {f'maniple_effects_pending{{{COMMON},urgency="decision"}}': "5000x120"}),
    Case("ManipleEventsDropped", {f"maniple_events_dropped_total{{{COMMON}}}": "0+1x120"}),
    Case(
        "ManipleCyclesSlow",
        {
            f'maniple_cycle_duration_seconds_bucket{{{COMMON},le="0.1"}}': "0x120",
            f'maniple_cycle_duration_seconds_bucket{{{COMMON},le="10"}}': "0+60x120",
        },
    ),
    Case("ManipleLoopLag", {f"maniple_loop_lag_seconds{{{COMMON}}}": "3x120"}),
    Case(
        "ManipleQueueMissing",
        {f'maniple_pending_jobs{{{COMMON},queue="b",cause="queue"}}': "1x120"},
        at="90m",
    ),
)
