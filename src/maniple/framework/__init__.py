"""The scheduling framework: configuration, registry, extension points, session, transaction, reasons.

Called by the placement, eviction, action and plugin rooms; knows nothing of any one policy.
"""
