"""Where conversations took place: evidence to projects."""
