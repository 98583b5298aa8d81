"""What proves a verdict: orders and proofs as certificates, cycles and proofs as explanations."""
