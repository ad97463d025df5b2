"""Search and lists: the query language, filters, ranking, results, snippets."""
