"""Widgets that several pages use: frames, labels, buttons, signs, charts' axes. They know no page."""
