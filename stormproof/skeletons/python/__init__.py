"""The system skeleton, and how it is put on trial: `adapter.py` shows it to Stormproof, `program.py` is what runs."""
