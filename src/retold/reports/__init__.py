"""Reports on tokens, money and tools."""
