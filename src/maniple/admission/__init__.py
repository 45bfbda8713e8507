"""The admission webhook: objects that could not be scheduled as written are refused when they are created.

The rules are pure (`review.py`): a request and what is known of the cluster give a verdict. Around them are the server,
the caches, and the certificates and webhook configurations that the process keeps up to date by itself.
"""
