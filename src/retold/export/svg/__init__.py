"""Pictures of numbers: values in, SVG out, for whatever page they stand on.

Colours come from the page's own style, by classes. Next to each picture a page has the same numbers as a table.
"""

from retold.export.svg.calendar import calendar
from retold.export.svg.columns import columns
from retold.export.svg.drawing import Datum
from retold.export.svg.hours import hours
from retold.export.svg.lengths import length, shares
from retold.export.svg.sparkline import sparkline

__all__ = ("Datum", "calendar", "columns", "hours", "length", "shares", "sparkline")
