"""Conversations from files and from the archive, whole or in parts."""
