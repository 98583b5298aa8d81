"""The suites that come with the project, found by name: `stormproof suite smoke`."""
