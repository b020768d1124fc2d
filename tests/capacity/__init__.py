"""Capacity: permits that hold under threads and deaths, lines in order, limits changed live."""
