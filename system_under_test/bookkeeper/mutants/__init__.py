"""Planted bugs of BookKeeper: each module has a constant `MUTANT`."""
