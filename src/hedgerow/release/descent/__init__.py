"""The pass over the data: up and down each subtree, from noisy to released counts."""
