// Syntax of codes and aliases: which are valid, which a caller may request.
import { isReserved } from './reserved.ts'

/** The longest code, in characters. */
export const CODE_LENGTH_MAX = 10

const codeShape = /^[0-9A-Za-z_-]{1,10}$/

/** Whether `text` has the shape of a code, generated or custom. */
export function isCode(text: string): boolean {
  return codeShape.test(text)
}

/** The fault of an alias. */
export type AliasFault = 'malformed' | 'reserved'

/** Why `alias` cannot be claimed; `undefined` if it can. */
export function aliasFault(alias: string): AliasFault | undefined {
  if (!isCode(alias)) return 'malformed'
  return isReserved(alias) ? 'reserved' : undefined
}

/**
 * The code in a request's path (no query), or `undefined` if the path cannot be one: deeper paths,
 * a trailing slash, other characters, and invalid escapes.
 */
export function parseCodePath(path: string): string | undefined {
  if (!path.startsWith('/')) return undefined
  const segment = path.slice(1)
  if (isCode(segment)) return segment
  if (!segment.includes('%') || segment.length > CODE_LENGTH_MAX * 3) return undefined
  try {
    const decoded = decodeURIComponent(segment)
    return isCode(decoded) ? decoded : undefined
  } catch {
    return undefined // an escape that stands for no character
  }
}
