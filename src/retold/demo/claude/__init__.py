"""Stories as Claude Code 2.1.100 writes them."""
