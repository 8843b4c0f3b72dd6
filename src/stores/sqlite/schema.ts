// The schema of the standalone database: migrations in order, each run once.

/** `PRAGMA user_version` counts how many of these have run. */
export const migrations: readonly string[] = [
  `CREATE TABLE links (
     short_code TEXT PRIMARY KEY NOT NULL,
     long_url TEXT,
     created_at INTEGER NOT NULL,
     expires_at INTEGER,
     creator_id INTEGER,
     writer_id TEXT NOT NULL,
     disabled_at INTEGER,
     deleted_at INTEGER
   ) WITHOUT ROWID, STRICT;
   CREATE INDEX links_ending ON links (expires_at)
     WHERE expires_at IS NOT NULL AND deleted_at IS NULL;
   CREATE TABLE code_pools (
     pool TEXT PRIMARY KEY NOT NULL,
     pool_number INTEGER NOT NULL UNIQUE,
     minted INTEGER NOT NULL,
     claimed INTEGER NOT NULL,
     writer_id TEXT,
     secret_fingerprint TEXT NOT NULL
   ) STRICT;
   CREATE TABLE code_blocks (
     pool TEXT NOT NULL,
     seq INTEGER NOT NULL,
     codes TEXT NOT NULL,
     PRIMARY KEY (pool, seq)
   ) WITHOUT ROWID, STRICT;
   CREATE TABLE idempotent_creates (
     key_hash TEXT PRIMARY KEY NOT NULL,
     body_hash TEXT NOT NULL,
     short_code TEXT NOT NULL,
     writer_id TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     expires_at INTEGER
   ) WITHOUT ROWID, STRICT;
   CREATE INDEX idempotent_creates_age ON idempotent_creates (created_at);
   CREATE TABLE secrets (name TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL) STRICT;`,
  `CREATE TABLE reports (
     id TEXT PRIMARY KEY NOT NULL,
     short_code TEXT NOT NULL,
     reason TEXT NOT NULL,
     details TEXT,
     contact TEXT
   ) STRICT;`,
]
