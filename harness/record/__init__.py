"""What a run leaves behind, and how it is read again. It imports nothing of the rooms above it."""
