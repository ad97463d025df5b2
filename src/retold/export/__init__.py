"""Text from sessions, for people and for programs."""
