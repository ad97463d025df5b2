"""Conversations as pages to read in a browser: one file each, which loads nothing and runs nothing."""
