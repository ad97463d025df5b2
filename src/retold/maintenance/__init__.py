"""Doctor, hooks, timers, connect, restore and watch: the only room that writes outside our own folders."""
