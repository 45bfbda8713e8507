"""Settings for every test. Hypothesis judges results, never the speed of the machine that it runs on."""

from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.live_support",)

settings.register_profile("maniple", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("maniple")
