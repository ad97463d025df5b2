"""A made-up home: weeks of invented work with all three agents, in their own files, to try everything on."""
