"""Stories as Gemini CLI writes them: 0.61.0 in JSON lines, 0.38.2 and 0.28.2 in documents."""
