"""A storm on a page: who sent what to whom, who believed what, and what was done to them, on one axis of time."""
