"""The page *Experiment*: what is done, over which lines, in which states, how often; and what that will take."""
