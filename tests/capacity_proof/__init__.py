"""Proof that limits hold outside: a provider in its own process counts what real workers call."""
