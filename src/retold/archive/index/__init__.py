"""The text index: files of its own, which can always be made again from the archive."""
