"""reflectjoborder: in KAI, the page `/get-job-order`.

Here `maniple run --debug-endpoints` serves it, with or without the plugin; the name is accepted so that KAI's files
load.
"""

from collections.abc import Mapping
from typing import Any

from maniple.framework.session import Session
from maniple.plugins.settings import takes_none


class ReflectJobOrder:
    """No arguments, no effect."""

    name = "reflectjoborder"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
