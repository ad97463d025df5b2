"""Queries on the archive, by topic: the rows that lists, reports, facets and searches need."""
