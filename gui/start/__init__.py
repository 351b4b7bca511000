"""The page on which the window opens: try it here, open a profile, open a run."""
