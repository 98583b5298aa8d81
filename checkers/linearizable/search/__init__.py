"""The search for an order, for any object: one compiled kernel, and what turns operations into its numbers."""
