"""The connectors of this package, a folder each; found by their entry points, named nowhere else."""
