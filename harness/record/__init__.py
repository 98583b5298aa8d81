"""What a run or a check leaves behind, and how it is read again: the ground floor, which knows nobody above it."""
