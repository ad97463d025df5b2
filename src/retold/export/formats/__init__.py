"""The formats in which conversations are exported, a module for each."""
