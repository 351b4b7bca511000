"""What runs on the hosts: standard library only, Python 3.8 or newer. Knows nothing else of BranchLab."""
