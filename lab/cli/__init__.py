"""The parts of the command line: what it shows in a terminal, and how it runs, stops and fails."""
