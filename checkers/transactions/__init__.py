"""Checkers of transactions: lists of reads and writes that happen at once, or should."""
