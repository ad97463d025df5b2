"""Plain text for terminals: tables, numbers, reports, search results."""
