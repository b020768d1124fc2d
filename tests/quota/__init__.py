"""The quota ledger: every round is reserved once and decided once, whatever dies in between."""
