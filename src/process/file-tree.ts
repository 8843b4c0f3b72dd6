// Lists and reads the small files of a folder that others change at any moment: bounded, and never
// a mixture of two moments. Knows nothing of what the files say.
import type { BigIntStats, Dirent } from 'node:fs'
import { lstat, open, readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pause } from '../resilience/deadline.ts'

/** Which files of a folder are meant. */
export interface FileTree {
  readonly folder: string
  /** Whether names that begin with `.` are left out; those with `..` always are (ConfigMaps). */
  readonly ignoresDotFiles: boolean
  /** What the key of each file begins with; a key is the path in the folder, `/` written as `.`. */
  readonly keyPrefix: string
  readonly filesMax: number
  /** Of all files together. */
  readonly bytesMax: number
}

/** A file as it was listed. */
interface ListedFile {
  readonly key: string
  readonly path: string
  readonly bytes: number
  /** Differs when the file has been changed or replaced. */
  readonly stamp: string
}

/** A file as it was read. */
export interface ReadFile {
  readonly name: string
  readonly text: string
}

/** What a listing found. */
export interface Listing {
  /** By key. */
  readonly files: readonly ListedFile[]
  /** State of the links beside them whose names begin with `..`: a ConfigMap's files go through. */
  readonly links: readonly string[]
  /** The folders in which they were sought. */
  readonly folders: readonly string[]
}

/** The files cannot be had; `file` is the key or path at fault. */
export class FileTreeError extends Error {
  override readonly name = 'FileTreeError'
  readonly file: string

  constructor(file: string, message: string) {
    super(message)
    this.file = file
  }
}

const DEPTH_MAX = 8
const ENTRIES_MAX = 10_000
const READ_TRIES_MAX = 5
const READ_AGAIN_MS = 20

/** Lists the files. Throws FileTreeError. */
export async function listTree(tree: FileTree): Promise<Listing> {
  const files: ListedFile[] = []
  const folders: string[] = []
  const links: string[] = []
  let entries = 0
  const walk = async (folder: string, { keyStart, depth }: { keyStart: string; depth: number }) => {
    folders.push(folder)
    for (const entry of await namesIn(folder)) {
      entries++
      if (entries > ENTRIES_MAX) throw tooMany(tree, ENTRIES_MAX, 'entries')
      const key = `${keyStart}${entry.name}`
      const path = join(folder, entry.name)
      if (isSwapped(entry)) links.push(`${key} ${(await linkStamp(path)) ?? 'gone'}`)
      if (isIgnored(entry.name, tree)) continue
      if (entry.isDirectory()) {
        if (depth < DEPTH_MAX && mayHold(key, tree))
          await walk(path, { keyStart: `${key}.`, depth: depth + 1 })
      } else if (key.startsWith(tree.keyPrefix)) {
        const listed = await listedOf(key, path)
        if (listed !== undefined) files.push(listed)
        if (files.length > tree.filesMax) throw tooMany(tree, tree.filesMax, 'files')
      }
    }
  }
  await walk(await realFolderOf(tree), { keyStart: '', depth: 0 })
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  if (bytes > tree.bytesMax) throw tooMany(tree, tree.bytesMax, 'bytes')
  return { files: files.sort((a, b) => (a.key < b.key ? -1 : 1)), links, folders }
}

/** The state of all files as one text, which differs when one of them does. */
export function stampOf({ files, links }: Listing): string {
  return [...links, ...files.map(({ key, stamp }) => `${key} ${stamp}`)].join('\n')
}

/** Reads the files as they were at one moment, by key. Throws FileTreeError. */
export async function readTree(tree: FileTree): Promise<readonly ReadFile[]> {
  for (let tries = 0; tries < READ_TRIES_MAX; tries++) {
    if (tries > 0) await pause(READ_AGAIN_MS)
    const before = await listTree(tree)
    const texts = await readListed(before.files)
    const isWhole = texts !== undefined && stampOf(await listTree(tree)) === stampOf(before)
    if (isWhole) return texts
  }
  throw new FileTreeError(tree.folder, 'the files were changed each time while they were read')
}

/** The texts of the files, or `undefined` where one of them has gone. */
async function readListed(files: readonly ListedFile[]): Promise<ReadFile[] | undefined> {
  const read: ReadFile[] = []
  for (const file of files) {
    const text = await readSame(file)
    if (text === undefined) return undefined
    read.push({ name: file.key, text })
  }
  return read
}

/** The text of the very file that was listed; `undefined` if it has gone or is another one now. */
async function readSame({ key, path, stamp }: ListedFile): Promise<string | undefined> {
  try {
    await using handle = await open(path)
    if (stampOfFile(await handle.stat({ bigint: true })) !== stamp) return undefined
    return await handle.readFile('utf8')
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw new FileTreeError(key, `cannot be read: ${codeOf(error)}`)
  }
}

/** The folder itself, so that a link to it that is swapped meanwhile does not mix two of them. */
async function realFolderOf({ folder }: FileTree): Promise<string> {
  try {
    return await realpath(folder)
  } catch (error) {
    throw new FileTreeError(folder, `the folder cannot be read: ${codeOf(error)}`)
  }
}

async function namesIn(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true })
  } catch (error) {
    throw new FileTreeError(folder, `the folder cannot be read: ${codeOf(error)}`)
  }
}

/** A file, also behind a link; folders behind links are not followed. */
async function listedOf(key: string, path: string): Promise<ListedFile | undefined> {
  try {
    const at = await stat(path, { bigint: true })
    if (!at.isFile()) return undefined
    return { key, path, bytes: Number(at.size), stamp: stampOfFile(at) }
  } catch (error) {
    if (isAbsent(error)) return undefined // it went since it was listed, or its link leads nowhere
    throw new FileTreeError(key, `cannot be read: ${codeOf(error)}`)
  }
}

function stampOfFile({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`
}

/** Whether a path leads to a folder. */
export async function isFolder(path: string): Promise<boolean> {
  const at = await stat(path).catch(() => undefined) // it is not there
  return at?.isDirectory() ?? false
}

/** Which link it is and when it was made; `undefined` where there is no link. Never throws. */
export async function linkStamp(path: string): Promise<string | undefined> {
  const seen = await lstat(path, { bigint: true }).catch(() => undefined) // it is not there
  return seen?.isSymbolicLink() === true ? `${seen.ino} ${seen.ctimeNs}` : undefined
}

function isSwapped(entry: Dirent): boolean {
  return entry.name.startsWith('..') && entry.isSymbolicLink()
}

function isIgnored(name: string, { ignoresDotFiles }: FileTree): boolean {
  return name.startsWith(ignoresDotFiles ? '.' : '..')
}

function mayHold(key: string, { keyPrefix }: FileTree): boolean {
  const start = `${key}.`
  return start.startsWith(keyPrefix) || keyPrefix.startsWith(start)
}

function tooMany({ folder }: FileTree, max: number, what: string): FileTreeError {
  return new FileTreeError(folder, `the folder holds more than ${max} ${what}`)
}

function isAbsent(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'ENOENT' || code === 'ENOTDIR'
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error)
}
