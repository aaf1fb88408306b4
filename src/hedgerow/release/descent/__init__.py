"""The pass over the data: up and down each subtree, from noisy to released counts.

True counts meet noise in `hedgerow.release.descent.source.Drawn.noisy`, and nowhere else.
"""
