"""From a scenario, or a history of somebody else's, to a verdict: what every command and every test of one's own calls."""
