"""Complete deciders of levels weaker than snapshots: which orders a history forces, and whether they make a cycle."""
