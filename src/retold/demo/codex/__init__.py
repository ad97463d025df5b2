"""Stories as Codex CLI 0.148.0 writes them."""
