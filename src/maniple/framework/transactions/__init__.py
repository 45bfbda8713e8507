"""Transactions: the only way in which a session is changed, and how that is undone."""
