"""How room is made for a job at the expense of others."""
