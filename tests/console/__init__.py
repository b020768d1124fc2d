"""The console's admin: what operators see and what it never lets them write."""
