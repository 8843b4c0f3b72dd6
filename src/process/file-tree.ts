// Lists and reads the small files of a folder that other processes may change at any time: bounded,
// and always one consistent snapshot. Independent of the contents of the files.
import type { BigIntStats } from 'node:fs'
import { lstat, open, readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pause } from '../resilience/deadline.ts'

/** A selection of files in a folder. */
export interface FileTree {
  readonly folder: string
  /** Whether to skip names that start with `.`; those with `..` are always skipped (ConfigMaps). */
  readonly ignoresDotFiles: boolean
  /** Prefix of the key of each file; a key is the path in the folder with `.` instead of `/`. */
  readonly keyPrefix: string
  readonly filesMax: number
  /** Maximum size of all files together. */
  readonly bytesMax: number
}

/** A file in a listing. */
interface ListedFile {
  readonly key: string
  readonly path: string
  readonly bytes: number
  /** Changes when the file is changed or replaced. */
  readonly stamp: string
}

/** A file with its contents. */
export interface ReadFile {
  readonly name: string
  readonly text: string
}

/** The result of a listing. */
export interface Listing {
  /** Sorted by key. */
  readonly files: readonly ListedFile[]
  /** State of the symlinks whose names start with `..`: a ConfigMap's files point to them. */
  readonly links: readonly string[]
  /** The folders that were searched. */
  readonly folders: readonly string[]
}

/** The files cannot be read; `file` is the key or path that caused it. */
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
const READ_ATTEMPTS_MAX = 5
const RETRY_AFTER_MS = 20

/** Lists the files. Throws FileTreeError. */
export async function listTree(tree: FileTree): Promise<Listing> {
  const files: ListedFile[] = []
  const folders: string[] = []
  const links: string[] = []
  let entries = 0
  const walk = async (folder: string, { keyPath, depth }: { keyPath: string; depth: number }) => {
    folders.push(folder)
    for (const entry of await read(folder, readdir(folder, { withFileTypes: true }))) {
      entries++
      if (entries > ENTRIES_MAX) throw tooMany(tree, ENTRIES_MAX, 'entries')
      const key = `${keyPath}${entry.name}`
      const path = join(folder, entry.name)
      const isVersionLink = entry.name.startsWith('..') && entry.isSymbolicLink()
      if (isVersionLink) links.push(`${key} ${(await symlinkStamp(path)) ?? 'deleted'}`)
      if (entry.name.startsWith(tree.ignoresDotFiles ? '.' : '..')) continue
      if (entry.isDirectory()) {
        if (depth < DEPTH_MAX && mayContain(key, tree))
          await walk(path, { keyPath: `${key}.`, depth: depth + 1 })
      } else if (key.startsWith(tree.keyPrefix)) {
        const file = await listFile(key, path)
        if (file !== undefined) files.push(file)
        if (files.length > tree.filesMax) throw tooMany(tree, tree.filesMax, 'files')
      }
    }
  }
  // The real path: if a symlink is replaced in the meantime, two folders must not be mixed.
  const root = await read(tree.folder, realpath(tree.folder))
  await walk(root, { keyPath: '', depth: 0 })
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  if (bytes > tree.bytesMax) throw tooMany(tree, tree.bytesMax, 'bytes')
  return { files: files.sort((a, b) => (a.key < b.key ? -1 : 1)), links, folders }
}

/** The state of all files and folders as one string, which changes when one of them does. */
export function stampOf({ folders, links, files }: Listing): string {
  return [...folders, ...links, ...files.map(({ key, stamp }) => `${key} ${stamp}`)].join('\n')
}

/** Reads a consistent snapshot of the files, sorted by key. Throws FileTreeError. */
export async function readTree(tree: FileTree): Promise<readonly ReadFile[]> {
  for (let attempt = 0; attempt < READ_ATTEMPTS_MAX; attempt++) {
    if (attempt > 0) await pause(RETRY_AFTER_MS)
    const before = await listTree(tree)
    const files = await readListed(before.files)
    const isConsistent = files !== undefined && stampOf(await listTree(tree)) === stampOf(before)
    if (isConsistent) return files
  }
  throw new FileTreeError(tree.folder, 'the files were changed each time while they were read')
}

/** The contents of the files, or `undefined` if one of them was changed or deleted. */
async function readListed(files: readonly ListedFile[]): Promise<ReadFile[] | undefined> {
  const read: ReadFile[] = []
  for (const file of files) {
    const text = await readUnchanged(file)
    if (text === undefined) return undefined
    read.push({ name: file.key, text })
  }
  return read
}

/** The contents of a listed file; `undefined` if it has been deleted or changed. */
async function readUnchanged({ key, path, stamp }: ListedFile): Promise<string | undefined> {
  try {
    await using handle = await open(path)
    if (stampOfFile(await handle.stat({ bigint: true })) !== stamp) return undefined
    return await handle.readFile('utf8')
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw new FileTreeError(key, `cannot be read: ${codeOf(error)}`)
  }
}

/** The result of an access to a folder. Throws FileTreeError. */
async function read<T>(folder: string, result: Promise<T>): Promise<T> {
  try {
    return await result
  } catch (error) {
    throw new FileTreeError(folder, `the folder cannot be read: ${codeOf(error)}`)
  }
}

/** A file or a symlink to one; symlinks to folders are not followed. */
async function listFile(key: string, path: string): Promise<ListedFile | undefined> {
  try {
    const stats = await stat(path, { bigint: true })
    if (!stats.isFile()) return undefined
    return { key, path, bytes: Number(stats.size), stamp: stampOfFile(stats) }
  } catch (error) {
    if (isAbsent(error)) return undefined // deleted after it was listed, or a dangling symlink
    throw new FileTreeError(key, `cannot be read: ${codeOf(error)}`)
  }
}

/** The identity, size and times of a file as one string, which changes when the file does. */
export function stampOfFile({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`
}

/** Whether a path is a folder or a symlink to one. */
export async function isFolder(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined) // it does not exist
  return stats?.isDirectory() ?? false
}

/** Identity and change time of a symlink; `undefined` if the path is not one. Never throws. */
export async function symlinkStamp(path: string): Promise<string | undefined> {
  const stats = await lstat(path, { bigint: true }).catch(() => undefined) // it does not exist
  return stats?.isSymbolicLink() === true ? `${stats.ino} ${stats.ctimeNs}` : undefined
}

function mayContain(key: string, { keyPrefix }: FileTree): boolean {
  const childPrefix = `${key}.`
  return childPrefix.startsWith(keyPrefix) || keyPrefix.startsWith(childPrefix)
}

function tooMany({ folder }: FileTree, max: number, what: string): FileTreeError {
  return new FileTreeError(folder, `the folder contains more than ${max} ${what}`)
}

function isAbsent(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'ENOENT' || code === 'ENOTDIR'
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error)
}
