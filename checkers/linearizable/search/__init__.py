"""The search for an order, whatever the object: one compiled kernel, and what turns operations into its numbers."""
