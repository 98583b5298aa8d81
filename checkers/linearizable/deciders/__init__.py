"""The common parts of deciders of objects: operations in numbers, and what follows from them for each kind of
object."""
