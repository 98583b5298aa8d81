"""Transactions: which isolation levels a history of list-append or rw-register transactions still allows."""
