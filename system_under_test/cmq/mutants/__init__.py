"""Planted bugs of CMQ: each module has a constant `MUTANT`."""
