"""Exact integer noise from keyed cryptographic bits.

It is added to true counts in `hedgerow.release.descent.source.Drawn.noisy` alone; how wide it is
follows from the budget in `hedgerow.privacy.calibrate.calibrate`.
"""
