"""Checkers of what was put in and came out: queues, sets, ids, counters, balances, messages, registers that grow."""
