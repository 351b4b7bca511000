"""The embedded lab: three or more hosts on this Linux machine, which are only more SSH hosts."""
