"""How skeleton is put on trial: `adapter.py` shows it to Stormproof, `nodes.py` says which command runs."""
