"""Looking after sessions in the agents' own folders: the only room that writes outside ours."""
