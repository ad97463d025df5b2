"""Failures, decisions, open ends and changed files of a session.

Only entries of the session's own count: a copied entry counts in the session that it is from, and a superseded one is
repeated elsewhere. Compacted entries count like others. In rewound entries nothing was decided and nothing is open, but
a failed call did fail, and is reported with its fate.
"""
