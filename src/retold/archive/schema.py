"""Tables of the archive and of its text index, as lists of migration steps. A released step is never edited: a change is a new step."""

MARK = 0x7265746C
"""The `application_id` of an archive: `retl`."""

STEPS = (
    """
-- What the archive knows about itself.
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- Files of the agents, whether or not they are still there; path and folders as text, or as bytes that are none.
CREATE TABLE sources (
    id INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    home NOT NULL,              -- the agent's folder, and the one in it that holds the sessions
    folder NOT NULL,
    label TEXT,
    path NOT NULL,
    cluster TEXT,               -- files of one conversation share this; NULL where a file holds many
    is_beside INTEGER NOT NULL, -- 1 for what only other files lead to: outputs, markers
    is_there INTEGER NOT NULL,
    size INTEGER NOT NULL,      -- size, time and end of the file when it was read last
    modified_ns INTEGER NOT NULL,
    tail BLOB NOT NULL,
    read_ns INTEGER NOT NULL,
    revision INTEGER NOT NULL,  -- of the reader
    refusal TEXT                -- the Problem, for a file that holds no conversation
);
CREATE UNIQUE INDEX source_paths ON sources (agent, path);
CREATE INDEX source_clusters ON sources (agent, cluster);

-- What files held: the latest, and what a later one does not hold any more.
CREATE TABLE originals (
    id INTEGER PRIMARY KEY,
    name INTEGER NOT NULL UNIQUE, -- a hash of the file's path, and when it was first read so
    source INTEGER NOT NULL REFERENCES sources,
    is_latest INTEGER NOT NULL, -- -1 where a later one says all of it: it goes when the index has followed
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    seal BLOB NOT NULL
);
CREATE INDEX original_sources ON originals (source);
CREATE TABLE pieces (
    original INTEGER NOT NULL REFERENCES originals,
    place INTEGER NOT NULL,
    chunk INTEGER NOT NULL REFERENCES chunks,
    PRIMARY KEY (original, place)
) WITHOUT ROWID;
CREATE INDEX piece_chunks ON pieces (chunk);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    packed BLOB NOT NULL        -- zstd
);

-- Everything below, up to the user's own hand, follows from the originals.
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    name INTEGER NOT NULL UNIQUE, -- a hash of what tells conversations apart
    stamp BLOB NOT NULL,          -- a hash of what it was made from
    agent TEXT NOT NULL,
    cluster TEXT,
    key TEXT NOT NULL UNIQUE,
    read_key TEXT NOT NULL,       -- the key that its files give it: differs where another had it first
    native_id TEXT,
    kind TEXT NOT NULL,
    read_kind TEXT NOT NULL,
    parent TEXT,
    read_parent TEXT,
    root TEXT,
    native_key TEXT,
    hash TEXT,
    evidence TEXT NOT NULL,
    title TEXT,
    read_title TEXT,
    started_at TEXT,
    ended_at TEXT,
    status TEXT NOT NULL,
    messages INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL,
    total INTEGER,
    estimated INTEGER NOT NULL,
    are_times_derived INTEGER NOT NULL,
    usage TEXT NOT NULL           -- as JSON, before what other sessions hold was taken out
);
CREATE INDEX session_ends ON sessions (ended_at, key);
CREATE INDEX session_clusters ON sessions (agent, cluster);
CREATE INDEX session_parents ON sessions (parent);
CREATE INDEX session_native_ids ON sessions (native_id);

-- The JSON form of each session, without its timeline: zlib, which every Python has at hand.
CREATE TABLE summaries (session INTEGER PRIMARY KEY REFERENCES sessions, packed BLOB NOT NULL);

CREATE TABLE session_sources (
    session INTEGER NOT NULL REFERENCES sessions,
    source INTEGER NOT NULL REFERENCES sources,
    PRIMARY KEY (session, source)
) WITHOUT ROWID;
CREATE INDEX source_sessions ON session_sources (source);

CREATE TABLE models (
    session INTEGER NOT NULL REFERENCES sessions,
    model TEXT NOT NULL,
    PRIMARY KEY (session, model)
) WITHOUT ROWID;

CREATE TABLE messages (
    session INTEGER NOT NULL REFERENCES sessions,
    seq INTEGER NOT NULL,       -- the place in the timeline of the full view
    id TEXT,
    name INTEGER,               -- a hash of the id, where it is long enough to tell messages apart
    role TEXT NOT NULL,         -- of a message; the kind of an event
    is_event INTEGER NOT NULL,
    is_prompt INTEGER NOT NULL,
    at INTEGER,                 -- microseconds since 1970, UTC
    fate TEXT NOT NULL,
    model TEXT,
    copied INTEGER NOT NULL,    -- from another session: 1 as its file says, 2 as that session shows
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
CREATE INDEX message_names ON messages (name) WHERE name IS NOT NULL;

CREATE TABLE tool_calls (
    session INTEGER NOT NULL REFERENCES sessions,
    seq INTEGER NOT NULL,
    place INTEGER NOT NULL,     -- among the parts of its message
    tool TEXT NOT NULL,
    canonical TEXT NOT NULL,
    server TEXT,
    status TEXT NOT NULL,
    at INTEGER,
    PRIMARY KEY (session, seq, place)
) WITHOUT ROWID;

CREATE TABLE files (
    session INTEGER NOT NULL REFERENCES sessions,
    path TEXT NOT NULL,
    PRIMARY KEY (session, path)
) WITHOUT ROWID;

-- The token ledger: each request of a session once.
CREATE TABLE requests (
    session INTEGER NOT NULL REFERENCES sessions,
    name INTEGER NOT NULL,      -- a hash of the request's id
    seq INTEGER NOT NULL,
    model TEXT,
    at INTEGER,
    input INTEGER,
    cached INTEGER,
    cache_write INTEGER,
    output INTEGER,
    reasoning INTEGER,
    tool INTEGER,
    total INTEGER,
    cache_write_1h INTEGER,
    estimated INTEGER NOT NULL,
    own INTEGER NOT NULL,       -- 0 where an earlier session holds it
    PRIMARY KEY (session, name)
) WITHOUT ROWID;
CREATE INDEX request_names ON requests (name);

CREATE TABLE problems (
    session INTEGER REFERENCES sessions,
    code TEXT NOT NULL,
    severity TEXT NOT NULL,
    message TEXT NOT NULL,
    path TEXT NOT NULL,
    line INTEGER,
    pointer TEXT NOT NULL
);
CREATE INDEX problem_sessions ON problems (session);

-- What files of many conversations say of each: to know which conversations a change in them concerns.
CREATE TABLE scraps (
    name INTEGER PRIMARY KEY,   -- as in sessions
    digest BLOB NOT NULL
);

-- What the homes say about where projects lie.
CREATE TABLE clues (
    home NOT NULL,
    native_key TEXT,
    root TEXT NOT NULL,
    evidence TEXT NOT NULL
);
CREATE TABLE roots (hash TEXT PRIMARY KEY, root TEXT NOT NULL) WITHOUT ROWID;

-- What was asked of the world by the last sync, and what it answered: the same answers mean that nothing changed.
CREATE TABLE answers (
    scope TEXT NOT NULL,
    asked NOT NULL,
    kind TEXT NOT NULL,
    answer,
    PRIMARY KEY (scope, kind, asked)
) WITHOUT ROWID;

-- The user's own hand.
CREATE TABLE names (name INTEGER PRIMARY KEY, title TEXT NOT NULL);
CREATE TABLE tags (name INTEGER NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (name, tag)) WITHOUT ROWID;
CREATE TABLE forgotten (name INTEGER PRIMARY KEY, native BLOB, forgotten_at TEXT NOT NULL);
""",
    """
-- What each request cost, in millionths of a millionth of a dollar; NULL where no price is known.
ALTER TABLE requests ADD COLUMN picos INTEGER;
ALTER TABLE tool_calls ADD COLUMN took_ms INTEGER;
ALTER TABLE files ADD COLUMN changes INTEGER NOT NULL DEFAULT 0; -- calls that were to change it

-- The prices that were used, as JSON; NULL for a model that has none.
CREATE TABLE rates (model TEXT PRIMARY KEY, told TEXT) WITHOUT ROWID;

-- Sums that reports are made of. A quarter is one of an hour, counted since 1970: every zone's days begin with one.
-- NULL where nothing tells the time. What was copied from another session counts there.
CREATE TABLE spent (
    session INTEGER NOT NULL REFERENCES sessions,
    quarter INTEGER,
    model TEXT,
    estimated INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,  -- requests without a price
    input INTEGER,
    cached INTEGER,
    cache_write INTEGER,
    output INTEGER,
    reasoning INTEGER,
    tool INTEGER,
    total INTEGER,
    cache_write_1h INTEGER,
    micros INTEGER,             -- millionths of a dollar, and what is left: one number might become too large
    picos INTEGER
);
CREATE INDEX spent_sessions ON spent (session);
CREATE TABLE used (
    session INTEGER NOT NULL REFERENCES sessions,
    quarter INTEGER,
    model TEXT,
    tool TEXT NOT NULL,
    canonical TEXT NOT NULL,
    calls INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    retries INTEGER NOT NULL,   -- calls of a tool that had failed when the session called it last
    timed INTEGER NOT NULL,     -- calls of which is known how long they took
    took_ms INTEGER,
    slowest_ms INTEGER
);
CREATE INDEX used_sessions ON used (session);
CREATE TABLE worked (
    session INTEGER NOT NULL REFERENCES sessions,
    quarter INTEGER,
    prompts INTEGER NOT NULL,
    active_ms INTEGER NOT NULL,
    compactions INTEGER NOT NULL,
    calls INTEGER NOT NULL,     -- the sums of what was used, which has a row for each tool
    errors INTEGER NOT NULL,
    retries INTEGER NOT NULL
);
CREATE INDEX worked_sessions ON worked (session);
""",
    """
-- The time of a file's last change and its inode: a rewrite with the same size and time changes one of them.
ALTER TABLE sources ADD COLUMN identity TEXT NOT NULL DEFAULT '';
""",
    """
-- What tells this archive from all others: the files of its index carry it too.
INSERT OR IGNORE INTO facts VALUES ('id', lower(hex(randomblob(16))));
""",
    """
-- 0 for a session without any message or prompt: it is archived, and no conversation.
ALTER TABLE sessions ADD COLUMN is_spoken INTEGER NOT NULL DEFAULT 1;
""",
    """
-- What is forgotten is known by keyed hashes alone: of a session's name, of the digest of the agent's own id, and of paths.
INSERT OR IGNORE INTO facts VALUES ('forgotten key', randomblob(32));
CREATE TABLE tombstones (name BLOB PRIMARY KEY, native BLOB, forgotten_at TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO tombstones
    SELECT keyed_hash(value, forgotten.name), iif(native IS NULL, NULL, keyed_hash(value, native)), forgotten_at
    FROM forgotten, facts WHERE facts.name = 'forgotten key';
DROP TABLE forgotten;
ALTER TABLE tombstones RENAME TO forgotten;
-- Paths that only forgotten sessions lead to. In `sources` and `answers` the same hash stands in place of such a path.
CREATE TABLE hidden (hash BLOB PRIMARY KEY) WITHOUT ROWID;
-- An archive that forgot a session drops the rows of files without content and of projects without sessions: the next sync
-- reads these files again. The next writer rewrites the file without the dropped bytes.
DELETE FROM answers WHERE EXISTS (SELECT 1 FROM forgotten);
DELETE FROM sources WHERE EXISTS (SELECT 1 FROM forgotten) AND refusal IS NULL
    AND NOT EXISTS (SELECT 1 FROM originals WHERE source = sources.id)
    AND NOT EXISTS (SELECT 1 FROM session_sources WHERE source = sources.id);
DELETE FROM clues WHERE EXISTS (SELECT 1 FROM forgotten)
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.root = clues.root);
DELETE FROM roots WHERE EXISTS (SELECT 1 FROM forgotten)
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.root = roots.root);
INSERT OR IGNORE INTO facts SELECT 'forgetting', '[[], []]' WHERE EXISTS (SELECT 1 FROM forgotten);
""",
    """
-- Plain names: `uid` for a 64-bit hash, `position` for a place in an order, nouns for tables. Renames take the same time
-- whatever the size of the archive.
ALTER TABLE sources RENAME COLUMN is_beside TO is_companion;
ALTER TABLE sources RENAME COLUMN is_there TO is_present;
ALTER TABLE originals RENAME COLUMN name TO uid;
ALTER TABLE originals RENAME COLUMN seal TO checksum;
ALTER TABLE pieces RENAME COLUMN place TO position;
ALTER TABLE sessions RENAME COLUMN name TO uid;
ALTER TABLE messages RENAME COLUMN name TO uid;
ALTER TABLE tool_calls RENAME COLUMN place TO position;
ALTER TABLE requests RENAME COLUMN name TO uid;
ALTER TABLE scraps RENAME COLUMN name TO uid;
ALTER TABLE tags RENAME COLUMN name TO uid;
ALTER TABLE names RENAME COLUMN name TO uid;
ALTER TABLE names RENAME TO titles;
ALTER TABLE forgotten RENAME COLUMN name TO uid_hash;
ALTER TABLE forgotten RENAME COLUMN native TO native_id_hash;
ALTER TABLE forgotten RENAME TO tombstones;
ALTER TABLE hidden RENAME TO hidden_paths;
ALTER TABLE answers RENAME COLUMN asked TO subject;
ALTER TABLE answers RENAME COLUMN answer TO value;
ALTER TABLE answers RENAME TO dependencies;
ALTER TABLE rates RENAME COLUMN told TO prices;
ALTER TABLE spent RENAME TO request_sums;
ALTER TABLE used RENAME TO tool_sums;
ALTER TABLE worked RENAME TO activity_sums;
""",
    """
-- What a reading of only the end of a file needs of the lines before: a cache, written again whenever the file is read whole.
CREATE TABLE bookmarks (source INTEGER PRIMARY KEY REFERENCES sources, packed BLOB NOT NULL);
""",
)

INDEX_MARK = 0x72657478
"""The `application_id` of a file of the text index: `retx`."""
_WORDS = 'tokenize = "unicode61 remove_diacritics 2"'
INDEX_STEPS = (
    f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
-- The sessions in this file, by their name in the archive, each as it was when it was put in.
CREATE TABLE told (
    id INTEGER PRIMARY KEY,
    name INTEGER NOT NULL UNIQUE,
    stamp BLOB NOT NULL,
    originals TEXT NOT NULL     -- the names of those that regions lie in
);
CREATE TABLE docs (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,       -- of the message; -1 for what is said about the session as a whole
    place INTEGER,              -- of the call whose output this is
    seal INTEGER NOT NULL,      -- to know an unchanged document again
    regions TEXT NOT NULL       -- where its texts stand
);
CREATE INDEX session_docs ON docs (session, seq);
CREATE TABLE pages (
    session INTEGER NOT NULL,
    place INTEGER NOT NULL,
    packed BLOB NOT NULL,
    PRIMARY KEY (session, place)
) WITHOUT ROWID;
-- Names with humps, as `timeZone`, by whose parts texts can be found as well.
CREATE TABLE names (name TEXT PRIMARY KEY, session INTEGER NOT NULL) WITHOUT ROWID; -- where it was met first
CREATE VIRTUAL TABLE said USING fts5(
    human, agent, content = '', contentless_delete = 1, detail = full, {_WORDS}
);
CREATE VIRTUAL TABLE output USING fts5(
    text, content = '', contentless_delete = 1, detail = none, {_WORDS}
);
""",
    """
-- Sessions that are long, as their files tell them; what they are to others, only the record knows.
CREATE TABLE timelines (
    session INTEGER PRIMARY KEY, -- as in told
    total INTEGER NOT NULL,     -- entries
    outline BLOB NOT NULL       -- what people said, zstd
);
CREATE TABLE stretches (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    place INTEGER NOT NULL,     -- of its first entry in the timeline
    messages INTEGER NOT NULL,  -- among the entries before it
    seal BLOB NOT NULL,         -- to know an unchanged stretch again
    packed BLOB NOT NULL        -- zstd
);
CREATE UNIQUE INDEX session_stretches ON stretches (session, place);
""",
    "ALTER TABLE stretches DROP COLUMN messages",
    """
ALTER TABLE told RENAME COLUMN name TO uid;
ALTER TABLE told RENAME TO entries;
ALTER TABLE docs RENAME COLUMN place TO position;
ALTER TABLE docs RENAME COLUMN seal TO checksum;
ALTER TABLE pages RENAME COLUMN place TO position;
ALTER TABLE stretches RENAME COLUMN place TO seq;
ALTER TABLE stretches RENAME COLUMN seal TO checksum;
ALTER TABLE stretches RENAME TO timeline_chunks;
ALTER TABLE names RENAME TO identifiers;
""",
    """
-- 1 for a chunk that was compressed with the texts of its documents, which are in the originals.
ALTER TABLE timeline_chunks ADD COLUMN needs_texts INTEGER NOT NULL DEFAULT 0;
""",
    """
-- Identifiers with humps as lines, each with the session in which it was met first, in hex. Reading a few long texts takes a fifth
-- of the time of reading a row for each identifier, and adding one takes the same time whatever is there.
CREATE TABLE identifier_lists (id INTEGER PRIMARY KEY, lines TEXT NOT NULL);
INSERT INTO identifier_lists (lines)
    SELECT group_concat(name || printf(' %x', session), char(10)) FROM identifiers GROUP BY session / 100;
DROP TABLE identifiers;
""",
)
