"""Questions asked of sessions."""
