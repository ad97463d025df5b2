"""A server on a port of this machine: what the page and the tools for agents have in common, and neither of them is."""
