"""What may be found, and the commands that mend it."""

import shlex

CODES = {
    "archive-damaged": "The archive is not what was written into it.",
    "archive-stale": "It is more than a day since the archive was brought up to date.",
    "archive-unusable": "The archive cannot be opened.",
    "broken-config": "`config.toml` in retold's own folder cannot be understood.",
    "broken-settings": "The agent's settings cannot be understood; its usual rules are assumed.",
    "damaged-file": "Something in a session's file could not be read; the rest was.",
    "deletion": "The agent deletes the session soon, by its age or because there are too many.",
    "ghost-twin": "A resume left a file without conversation beside the session, and both go at the next start.",
    "index-behind": "The text index is not in step with the archive.",
    "little-space": "The disk that the archive is on is nearly full.",
    "lone-outputs": "Tool outputs are left of a session that is neither there nor in the archive.",
    "lone-subagent": "A subagent is left of a session that is neither there nor in the archive.",
    "lost": "The agent's files of the session are gone; the archive has it.",
    "missing-home": "A home that `config.toml` names is not there.",
    "no-archive": "There is no archive yet.",
    "nothing-to-resume": "Nothing in the session can be resumed, so that the agent deletes it at its next start.",
    "open-to-others": "Others on this machine may read what retold keeps.",
    "prompts-only": "Only the prompts are left of a session.",
    "refused-file": "A file among the sessions holds no conversation in a known form.",
    "subagent-sibling": "A subagent's file lies beside its session, and both go at the next start.",
    "unarchived": "Files are new or have changed since the last sync.",
    "unknown-records": "Records of a kind that nobody knows yet were kept as they are.",
    "unloadable": "The agent cannot load the file, and deletes it at its next start.",
    "unread-data": "Data in an agent's home that retold cannot read yet.",
    "unread-file": "A sync could not read a file, because of a bug of retold or of damage in the archive.",
    "unreadable": "The operating system does not let retold look into a file or folder.",
}
"""What may be found: permanent, like the codes of problems."""

DAMAGE = ("archive-damaged", "archive-unusable")
"""The archive itself is damaged or cannot be used."""
SYNC = "retold sync"
REINDEX = "retold sync --reindex"
KEEP = "retold keep --install"


def command(*words: str) -> str:
    """Return a command as it can be typed."""
    return shlex.join(words)
