"""Linearizability of independent objects."""
