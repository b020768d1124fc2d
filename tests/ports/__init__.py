"""The ports' adapters against local servers that behave as the outside world does."""
