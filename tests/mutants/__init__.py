"""Mutants: the product with one guard broken each, which the tests must notice.

`catalogue`, `further` and `missed` name them, as exact text to replace; `grinding` applies one
after the other to copies of the tree and runs the few suites that should catch it; `python -m
tests.mutants` runs all and writes docs/mutants.md. A mutant whose text has moved is an error, not a
pass.
"""
