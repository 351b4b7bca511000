"""The page *Compare*: one run held against another."""
