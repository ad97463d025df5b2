"""Commands: parse, ask, emit."""
