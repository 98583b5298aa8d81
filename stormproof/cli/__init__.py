"""The composition root: commands that put systems, workloads, nemeses, environments and checkers together."""
