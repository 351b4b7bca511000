"""From a run to values and sentences: statistics and findings."""
