"""Cycles of dependencies between transactions, and what each of them is called."""
