"""`up`, `demo` and `prepare`, found by Django through the `config` app."""
