"""What a history records of objects: rows, calls on one object, and columns of numbers."""
