"""Bytes to records: a value or a Problem, never an exception for what a file holds."""
