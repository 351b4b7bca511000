"""The page of a run under way: matrix, traffic, times as they come, output with its proofs."""
