"""The record of all sessions and their originals, and the text index: the only SQL."""
