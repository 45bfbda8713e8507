"""`maniple bench --live`: what scheduling costs on a cluster, measured beside a client that only binds."""
