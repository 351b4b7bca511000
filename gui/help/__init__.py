"""The page Help, drawn."""
