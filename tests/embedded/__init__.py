"""The bundled mongod and redis-server: start, stop, crash, refusal."""
