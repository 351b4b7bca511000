"""What leaves BranchLab: files that other programs read."""
