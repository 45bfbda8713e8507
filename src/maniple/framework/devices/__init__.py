"""GPUs: what nodes have of them, and the books of those that are shared."""
