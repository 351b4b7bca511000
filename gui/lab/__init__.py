"""The page of the lab: the picture of hosts and line, alive, and what is known of each."""
