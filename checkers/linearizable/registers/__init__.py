"""Registers that hold integers: columns from end to end, of any size."""
