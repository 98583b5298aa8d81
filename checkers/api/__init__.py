"""All that the author of a checker needs: the parts of a plan, what it reports, and how that becomes a verdict."""
