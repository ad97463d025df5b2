"""The sync: find the agents' files, read what changed in workers, write it into the archive.

The package cannot be named `sync`: it would hide the function `retold.sync`.
"""
