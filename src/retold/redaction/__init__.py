"""Sessions without their secrets, and a report of what was taken out."""

from retold.redaction.redactor import Redactor
from retold.redaction.report import Place, Removal

__all__ = ["Place", "Redactor", "Removal"]
