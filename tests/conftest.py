"""Settings for every test; Hypothesis judges results, never the speed of the machine.

Local runs use new examples every time; CI uses the same ones, so that it is repeatable. Nothing depends on
the settings of a terminal, a cluster or a proxy.
"""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.live_support",)

TERMINAL = (
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
)
CLUSTER = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_EXEC_INFO")
for name in (*TERMINAL, *CLUSTER, "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
    os.environ.pop(name, None)
    os.environ.pop(name.lower(), None)

settings.register_profile("maniple", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("check", settings.get_profile("maniple"), derandomize=True)
settings.load_profile("check" if os.environ.get("MANIPLE_REQUIRE_PLANE") == "1" else "maniple")
