"""Checkers that count elements: queues, sets, unique ids."""
