"""The test tiers, one folder each; `tests.kit` holds what they share."""
