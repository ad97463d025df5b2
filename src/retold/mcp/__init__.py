"""The history for agents: tools, resources and prompts of the Model Context Protocol."""
