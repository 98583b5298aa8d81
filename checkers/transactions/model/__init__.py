"""Consistency models of transactions and the lattice that they make up."""
