"""From a scenario, or a foreign history, to a verdict: what every command and every test of one's own calls."""
