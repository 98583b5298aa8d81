"""Why an object is not linearizable: the smallest set of operations found that shows it, and what surrounds it."""
