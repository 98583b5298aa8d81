"""A storm on a page: messages between nodes and clients, what nodes believed, and the faults, on one axis of time."""
