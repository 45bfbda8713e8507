"""dynamicresources: claims are allocated and freed as pods of both systems are placed and evicted.

See `plugins/kai/dynamicresources.py`. The label with the queue on a shared GPU claim is KAI's convention:
pods of other jobs may use one without.
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
