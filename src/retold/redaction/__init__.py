"""Redaction: sessions without their secrets, and a report of what was removed."""

from retold.redaction.redactor import Redactor, Removal, RemovalPlace

__all__ = ["Redactor", "Removal", "RemovalPlace"]
