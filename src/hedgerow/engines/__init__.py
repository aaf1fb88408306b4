"""Who runs which subtree job."""
