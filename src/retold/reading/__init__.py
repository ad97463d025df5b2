"""Bytes to records for any agent: a value or a Problem, never an exception for the content of a file."""
