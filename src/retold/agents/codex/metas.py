"""What a thread's own record says of it: whose it is, where it took place, what it comes from."""

from retold.agents.codex.raw import Record, text_or_none
from retold.model.session import Kind, Project, root_hash


def is_subagent(meta: Record) -> bool:
    """Tell whether an agent started this thread."""
    source = meta.get("source")
    return (type(source) is dict and "subagent" in source) or meta.get("thread_source") == "subagent"


def kind_of(meta: Record) -> Kind:
    """Return what a thread is to others."""
    if is_subagent(meta):
        return "subagent"
    return "fork" if text_or_none(meta.get("forked_from_id")) else "main"


def parent_of(meta: Record) -> str | None:
    """Return the key of the thread that this one comes from: who started it, else what it was forked from."""
    source = meta.get("source")
    spawned = source.get("subagent") if type(source) is dict else None
    thread = spawned.get("thread_spawn") if type(spawned) is dict else None
    named = thread.get("parent_thread_id") if type(thread) is dict else None
    known = (named, meta.get("parent_thread_id"), meta.get("forked_from_id"))
    return next((f"codex:{parent}" for parent in known if text_or_none(parent)), None)


def project_of(meta: Record) -> Project:
    """Return where a thread was started."""
    root = text_or_none(meta.get("cwd"))
    return Project(root, None, root_hash(root) if root else None, "recorded" if root else "none")
