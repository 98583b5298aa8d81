"""Linearizability of independent objects.

Nothing is imported here: the program that replays certificates lies beneath, and starts without the checker.
"""
