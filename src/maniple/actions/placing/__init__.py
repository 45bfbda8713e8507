"""How a job gets nodes, all or nothing."""
