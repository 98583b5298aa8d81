"""The records of objects in a history: rows, calls on one object, and columns of numbers."""
