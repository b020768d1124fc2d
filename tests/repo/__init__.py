"""The repository tests itself: size limits, docstrings, words, docs in step with code."""
