"""Planted bugs of DLedger: each module has a constant `MUTANT`."""
