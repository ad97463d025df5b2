"""What is put into settings that others write too, whichever form they have."""

from retold.agents.protocol import ListItem, SettingsTable
from retold.care.items import has_item, with_item, without_item
from retold.care.splice import is_bare_object
from retold.care.tables import has_table, with_table, without_table

Entry = ListItem | SettingsTable


def with_entry(text: str | None, entry: Entry) -> str:
    """Return settings that have it; raises Broken."""
    return with_item(text, entry) if isinstance(entry, ListItem) else with_table(text, entry)


def without_entry(text: str, entry: Entry) -> str:
    """Return settings without it, and all else as it stands; raises Broken."""
    return without_item(text, entry) if isinstance(entry, ListItem) else without_table(text, entry)


def has_entry(text: str, entry: Entry) -> bool:
    """Tell whether settings have it; raises Broken."""
    return has_item(text, entry) if isinstance(entry, ListItem) else has_table(text, entry)


def is_empty(text: str, entry: Entry) -> bool:
    """Tell whether settings say nothing at all."""
    return is_bare_object(text) if isinstance(entry, ListItem) else not text.strip()


def is_named(raw: bytes, entry: Entry) -> bool:
    """Tell whether something in settings that cannot be read may be it."""
    return (entry.value if isinstance(entry, ListItem) else entry.keys[-1]).encode() in raw
