"""Elle's way: dependencies inferred from what reads show, and the cycles that they make."""
