"""What a history says of its transactions, as flat arrays: before anybody judges it."""
