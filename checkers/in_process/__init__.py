"""The engine that runs plans in this process."""
