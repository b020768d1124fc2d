"""The REST API over real servers: contract, refusals, tenants, JSON fidelity."""
