"""What is at risk, what is lost and what is left of it: each file looks for one kind of finding."""
