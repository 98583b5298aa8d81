"""Causal order seen by clients: causes before effects, and one order of two writes for all readers."""
