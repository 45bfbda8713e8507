"""Settings for every test. Hypothesis judges results, never the speed of the machine that it runs on.

People's runs look at new examples every time; the check that a change must pass looks at the same ones, so that it says the same twice.
"""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.live_support",)

settings.register_profile("maniple", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("check", settings.get_profile("maniple"), derandomize=True)
settings.load_profile("check" if os.environ.get("MANIPLE_REQUIRE_PLANE") == "1" else "maniple")
