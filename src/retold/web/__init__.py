"""The local page: the commands' questions, answered in a browser."""
