"""PySyncObj, unmodified, on trial: docs/systems/pysyncobj.md says what it promises and what was found."""
