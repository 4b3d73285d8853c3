"""Records that change the rows of their keys: what each does, staged for a merge."""
