"""The actions of the `kai` profile: jobs are served as wholes, in the order of the queue tree, inside transactions that succeed or vanish."""
