"""The transactions of a history as flat arrays, before they are judged."""
