"""What deciders of objects share: operations in numbers, and what follows from them for each kind of object."""
