"""Schema changes of the reference business, in order."""
