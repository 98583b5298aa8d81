"""The method of Elle: dependencies inferred from what reads show, and the cycles that they make."""
