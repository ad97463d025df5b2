"""The local page: the same questions as the commands ask, answered in a browser."""
