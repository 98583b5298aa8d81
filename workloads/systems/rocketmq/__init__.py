"""RocketMQ, shown to the harness: its nodes, its clients, and what it may legally lose."""
