"""What a run leaves for people and machines: `verdict.json`, `junit.xml`, `report.html`."""
