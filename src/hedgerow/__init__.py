"""Hedgerow: hierarchical count tables under differential privacy.

One file describes the table and the promise; a plan shows the noise and the exact privacy cost
before the data are touched; a release gives non-negative integer counts that add up at every level.

The map of the packages is docs/developers/data-flow.md; each formula, with its file and its source,
stands in docs/mathematics.md.
"""

import lazy_loader

__version__ = "0.1.0"

# Each name is imported on first use, so that `import hedgerow` loads no NumPy, Numba or DuckDB.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
