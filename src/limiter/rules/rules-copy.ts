// Keeps a copy of the last valid rules in one file, so that a restarted process has rules even if
// the rule files are invalid or the xDS server is unavailable; a new pod has no copy, and may read
// the fallback version instead.
import { readFile, rename, stat, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import * as z from 'zod'
import { createBoundedAccess } from '../../process/bounded-access.ts'
import type { ReadFile } from '../../process/file-tree.ts'
import { type DiscoveryResponse, readDiscoveryResponse } from '../../protobuf/discovery.ts'
import type { Log } from '../../telemetry/log.ts'

/** A copy. Its methods never throw: the limiter logs errors and works without a copy. */
export interface Copy<T> {
  /** The last valid rules; `undefined` if the copy does not exist or is unreadable. */
  read(): Promise<T | undefined>
  /** Replaces the copy as a whole. */
  write(rules: T): Promise<void>
}

/** A copy of rule files. */
export type RulesCopy = Copy<readonly ReadFile[]>

/** Twice the 16 MiB of all rule files: JSON escapes quotes and line breaks with two characters. */
const FILES_BYTES_MAX = 32 * 1024 * 1024
/** The maximum of XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES. */
const VERSION_BYTES_MAX = 64 * 1024 * 1024
const ACCESS_MS_MAX = 10_000
const READ_FAILED = 'cannot read the copy of the rules'
const WRITE_FAILED = 'cannot write the copy of the rules'
const shape = z.array(z.strictObject({ name: z.string(), text: z.string() }))

/** The copy of rule files at a path; its folder must exist. */
export function openRulesCopy(path: string, log: Pick<Log, 'warn'>): RulesCopy {
  return openCopy({
    path,
    log,
    bytesMax: FILES_BYTES_MAX,
    encode: (files) => JSON.stringify(files.map(({ name, text }) => ({ name, text }))),
    decode: (bytes) => shape.parse(JSON.parse(bytes.toString())),
  })
}

/** The copy of a version of an xDS server, which contains the response as received. */
export function openVersionCopy(path: string, log: Pick<Log, 'warn'>): Copy<DiscoveryResponse> {
  return openCopy({
    path,
    log,
    bytesMax: VERSION_BYTES_MAX,
    encode: ({ message }) => message,
    decode: readDiscoveryResponse,
  })
}

/**
 * The version that the xDS server has stored in a file, compressed by gzip: XDS_FALLBACK_VERSION.
 * The file may be absent, and may be replaced at any time.
 */
export function openFallbackVersion(
  path: string,
  log: Pick<Log, 'warn'>,
): Pick<Copy<DiscoveryResponse>, 'read'> {
  const decode = async (bytes: Buffer) =>
    readDiscoveryResponse(await unzip(bytes, { maxOutputLength: VERSION_BYTES_MAX }))
  const message = 'cannot read the fallback version of the rules'
  const file = { path, log, bytesMax: VERSION_BYTES_MAX, decode, message }
  const access = createLoggedAccess(log)
  return { read: () => access(() => readBounded(file), { what: `reading ${path}`, message }) }
}

const unzip = promisify(gunzip)

function openCopy<T>(given: {
  readonly path: string
  readonly log: Pick<Log, 'warn'>
  readonly bytesMax: number
  readonly encode: (rules: T) => string | Buffer
  readonly decode: (bytes: Buffer) => T
}): Copy<T> {
  const { path, log } = given
  return {
    read: () => readBounded({ ...given, message: READ_FAILED }),
    async write(rules) {
      try {
        await writeFile(`${path}.new`, given.encode(rules), { mode: 0o600 })
        await rename(`${path}.new`, path)
      } catch (err) {
        log.warn({ err, path }, WRITE_FAILED)
      }
    },
  }
}

/** The content of a file; `undefined` if it is absent, or, with a log line, if it is unreadable. */
async function readBounded<T>(given: {
  readonly path: string
  readonly log: Pick<Log, 'warn'>
  readonly bytesMax: number
  readonly decode: (bytes: Buffer) => T | Promise<T>
  readonly message: string
}): Promise<T | undefined> {
  const { path, log, bytesMax } = given
  try {
    const { size } = await stat(path)
    if (size > bytesMax)
      throw new Error(`the file must have at most ${bytesMax} bytes: it has ${size}`)
    return await given.decode(await readFile(path))
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    log.warn({ err, path }, given.message)
    return undefined
  }
}

/** The copy with a deadline for each access, because the disk may hang. */
export function boundCopy<T>(copy: Copy<T>, log: Pick<Log, 'warn'>): Copy<T> {
  const access = createLoggedAccess(log)
  const reading = { what: 'reading the copy of the rules', message: READ_FAILED }
  const writing = { what: 'writing the copy of the rules', message: WRITE_FAILED }
  return {
    read: () => access(() => copy.read(), reading),
    write: (rules) => access(() => copy.write(rules), writing),
  }
}

/** Bounds each access; the result is `undefined`, with a log line, after its deadline. */
function createLoggedAccess(log: Pick<Log, 'warn'>) {
  const access = createBoundedAccess(ACCESS_MS_MAX)
  return <R>(run: () => Promise<R>, on: { readonly what: string; readonly message: string }) => {
    const timeout = () => new Error(`${on.what} took longer than ${ACCESS_MS_MAX} ms`)
    return access<R | undefined>(run, timeout).catch((err: unknown) => {
      log.warn({ err }, on.message)
      return undefined
    })
  }
}

/** A copy that is written in the background: one write at a time, and only the newest waits. */
export interface BackgroundCopy<T> {
  read(): Promise<T | undefined>
  /** Replaces the copy as soon as the write in flight has completed. */
  write(rules: T): void
  /** Resolves when no write is in flight. */
  settle(): Promise<void>
}

/** The copy with writes in the background, because a slow disk must not delay the caller. */
export function writeInBackground<T>(copy: Copy<T>): BackgroundCopy<T> {
  let newest: { readonly rules: T } | undefined
  let writing: Promise<void> | undefined
  const run = async () => {
    while (newest !== undefined) {
      const { rules } = newest
      newest = undefined
      await copy.write(rules)
    }
    writing = undefined
  }
  return {
    read: () => copy.read(),
    write(rules) {
      newest = { rules }
      writing ??= run()
    },
    settle: () => writing ?? Promise.resolve(),
  }
}
