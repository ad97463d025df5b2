"""Findings: what is at risk, what is lost, and what is left of it."""
