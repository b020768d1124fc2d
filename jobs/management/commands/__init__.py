"""The commands themselves; Django finds them by their module names."""
