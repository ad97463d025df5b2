"""One folder per agent, each a module with the same files; strangers to each other."""
