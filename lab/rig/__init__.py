"""The parts of the real testbed: connected hosts, meters, the line held, the cache's fullness, the workplace."""
