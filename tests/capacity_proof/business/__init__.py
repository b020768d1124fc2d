"""A Django app whose workflows call the provider of these tests, with permits."""
