"""The client that RocketMQ's users install, unmodified, in place of our own where clients speak gRPC for real."""
