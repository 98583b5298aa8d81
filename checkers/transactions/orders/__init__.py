"""Complete deciders: whether any order of the transactions explains every read, level by level."""
