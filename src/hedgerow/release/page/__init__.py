"""The parts of ``report.html``: words, tables, curves, and counts small enough to travel in it."""
