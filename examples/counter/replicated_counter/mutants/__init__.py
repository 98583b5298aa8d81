"""Planted bugs, one module each."""
