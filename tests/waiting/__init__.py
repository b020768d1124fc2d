"""Durable waiting: signals, timers, polls and graphs of them, in every order they can meet."""
