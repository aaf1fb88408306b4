"""What offices do today instead: rounding, suppression and cell keys, beside a release."""
