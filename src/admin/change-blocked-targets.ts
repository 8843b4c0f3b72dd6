// Changes of the list of blocked targets by an operator: adds, removes and lists entries, and finds
// those that block a URL. Pure. New lines have the normal form, in which entries are compared.
import { type BlockedEntry, parseBlockedEntry } from '../links/blocked-entry.ts'
import { type NormalTarget, normalTargetOf } from '../links/normal-target.ts'
import { addLines, type ListDocument, linesOf, removeLines } from '../process/list-target.ts'

/** A faulty line of a list or a file; `fault` completes a sentence that starts with the line. */
export interface FaultyLine {
  readonly number: number
  readonly fault: string
}

/** The entries of a list. */
export interface ListedEntries {
  /** In normal form, in the order of the list. */
  readonly entries: ReadonlySet<string>
  /** The lines that the pods ignore. */
  readonly faulty: readonly (FaultyLine & { readonly document: string })[]
}

/** The entry of a line in normal form; a fault; or `undefined` for an empty line or a comment. */
export function normalizeEntry(line: string): string | { readonly fault: string } | undefined {
  const entry = parseBlockedEntry(line)
  if (entry === undefined || 'fault' in entry) return entry
  return renderEntry(entry)
}

function renderEntry({ host, path = '' }: BlockedEntry): string {
  return host + path
}

/** The entries of a file, in normal form, and its faulty lines. */
export function parseEntries(content: string): {
  readonly entries: ReadonlySet<string>
  readonly faulty: readonly FaultyLine[]
} {
  return readEntries([{ name: '', content, bytesMax: 0 }])
}

/** The entries of a list. */
export function readEntries(documents: readonly ListDocument[]): ListedEntries {
  const entries = new Set<string>()
  const faulty: (FaultyLine & { document: string })[] = []
  for (const { line, document, number } of linesOf(documents)) {
    const entry = normalizeEntry(line)
    if (typeof entry === 'string') entries.add(entry)
    else if (entry !== undefined) faulty.push({ document, number, fault: entry.fault })
  }
  return { entries, faulty }
}

/**
 * Adds entries in normal form. Returns the new contents, the number of entries that the list did
 * not have, and their total number; `undefined` if they do not fit.
 */
export function addEntries(
  documents: readonly ListDocument[],
  entries: ReadonlySet<string>,
): { contents: Map<string, string>; added: number; total: number } | undefined {
  const present = readEntries(documents).entries
  const missing = [...entries].filter((entry) => !present.has(entry))
  const contents = addLines(documents, missing)
  const added = missing.length
  return contents && { contents, added, total: present.size + added }
}

/** Removes entries in normal form. Returns the new contents, and which entries were removed. */
export function removeEntries(
  documents: readonly ListDocument[],
  entries: ReadonlySet<string>,
): { readonly contents: Map<string, string>; readonly found: ReadonlySet<string> } {
  const found = new Set<string>()
  const contents = removeLines(documents, ({ line }) => {
    const entry = normalizeEntry(line)
    if (typeof entry !== 'string' || !entries.has(entry)) return false
    found.add(entry)
    return true
  })
  return { contents, found }
}

/** The entries that block a URL, in normal form; `undefined` if it is not an http(s) URL. */
export function findBlocking(
  documents: readonly ListDocument[],
  url: string,
): readonly string[] | undefined {
  if (!/^https?:\/\//i.test(url)) return undefined
  const target = normalTargetOf(url)
  if (target === undefined) return undefined
  const blocking = new Set<string>()
  for (const { line } of linesOf(documents)) {
    const entry = parseBlockedEntry(line)
    if (entry === undefined || 'fault' in entry) continue
    if (blocks(entry, target)) blocking.add(renderEntry(entry))
  }
  return [...blocking]
}

function blocks({ host, path }: BlockedEntry, target: NormalTarget): boolean {
  if (path !== undefined) return target.host === host && target.path.startsWith(path)
  return target.host === host || target.host.endsWith(`.${host}`)
}
