"""Care for the sessions in the agents' folders: doctor, hooks, timers, connect, restore, watch.

The only room that writes outside our own folders.
"""
