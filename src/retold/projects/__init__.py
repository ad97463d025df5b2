"""Projects of sessions: resolved from evidence, matched by filters, and found on disk."""
