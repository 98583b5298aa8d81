"""All that the author of a checker needs: what a plan is made of, what it reports, and how the verdict comes of it."""
