"""dynamicresources: claims get and lose devices as their pods are placed and evicted, for pods of both systems.

See `plugins/kai/dynamicresources.py`. That a GPU claim which several pods may share has to carry a label with its queue is a custom of KAI's: pods of other jobs may use one without.
"""

from maniple.objects.dra import ResourceClaim
from maniple.objects.kai import KaiPodGroup
from maniple.plugins.kai import dynamicresources


class DynamicResources(dynamicresources.DynamicResources):
    def _wrong_label(self, claim: ResourceClaim, job: int) -> str:
        of_kai = isinstance(self._session.cluster.jobs.objects.get(job), KaiPodGroup)
        if not of_kai and self._label not in claim.metadata.labels:
            return ""
        return super()._wrong_label(claim, job)


__all__ = ["DynamicResources"]
