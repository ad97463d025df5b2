"""What is true of every agent: sessions, messages, parts, usage, projects, problems, and their JSON form."""
