"""The terminal browser: the same questions as the commands ask, with the answers beside each other."""
