"""The wizard *New lab*: server, proxy, clients, each tested as it is entered; then name and check."""
