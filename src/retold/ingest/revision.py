"""The version of the readers."""

REVISION = 5
"""Raised when a reader understands more: then everything is read again, from the originals where files are gone."""
