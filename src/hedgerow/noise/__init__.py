"""Exact integer noise from keyed cryptographic bits."""
