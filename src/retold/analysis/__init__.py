"""What a session comes to: pure functions of its timeline."""
