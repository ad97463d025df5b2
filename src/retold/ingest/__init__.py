"""Agents and projects brought together: what there is, one conversation at a time."""
