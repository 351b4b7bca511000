"""Data only: drivers, lines, experiments, published figures, fonts and themes."""
