"""Conversations as pages to read in a browser: one file each, with nothing to load and nothing that runs."""

from retold.export.html.page import index_pieces, pieces

__all__ = ["index_pieces", "pieces"]
