"""Sessions without their secrets, and a report of what was taken out."""

from retold.redaction.redactor import Redactor, Removal, RemovalPlace

__all__ = ["Redactor", "Removal", "RemovalPlace"]
