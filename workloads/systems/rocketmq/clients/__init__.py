"""Clients of RocketMQ: of the log, of the log as a queue, of registers, and of the store with its transactions."""
