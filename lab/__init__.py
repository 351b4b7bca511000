"""The domain, the engine and the command line of BranchLab. Knows no Qt."""
