"""A Django app of workflows whose every entry is written down."""
