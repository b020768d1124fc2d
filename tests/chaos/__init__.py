"""A soak on real servers and workers while everything that can fail does (`make chaos`)."""
