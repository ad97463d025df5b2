"""Sessions without their secrets, and a report of what was taken out."""

from retold.redaction.redactor import Redactor
from retold.redaction.report import Removal, RemovalPlace

__all__ = ["Redactor", "Removal", "RemovalPlace"]
