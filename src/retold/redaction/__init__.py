"""Sessions without their secrets, and a report of what was taken out."""
