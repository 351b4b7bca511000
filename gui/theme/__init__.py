"""The look: palettes, type, signs and markers. Colours by token only."""
