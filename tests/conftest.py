"""What holds for every test."""

from hypothesis import settings

# No deadline: machines differ and kernels compile on first use; benchmarks tell the time.
settings.register_profile("hedgerow", deadline=None)
settings.load_profile("hedgerow")
