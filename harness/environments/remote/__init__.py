"""What acts on a node that runs somewhere else, whatever the way to it: an agent beside it, and verbs over a shell."""
