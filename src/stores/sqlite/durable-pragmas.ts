// The pragmas of every connection that writes.

/** A commit is on the disk before it is acknowledged: WAL, with a sync for each commit. */
export const durablePragmas = 'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;'
