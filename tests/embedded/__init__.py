"""The bundled mongod and redis-server: start, stop, crash, refusal; what a test run has of them."""
