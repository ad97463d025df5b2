"""The history as a memory that agents can ask: tools, resources and prompts of the Model Context Protocol."""
