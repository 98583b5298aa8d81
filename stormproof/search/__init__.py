"""The search for storms that a system does not withstand: many, in memory, guided by what was seen, shrunk."""
