// The syntax of codes and aliases, and which aliases a client may request.
import { isReserved } from './reserved.ts'

/** Maximum length of a code, in characters. */
export const CODE_LENGTH_MAX = 10

/** The syntax of codes and aliases. */
export const codeSyntax = /^[0-9A-Za-z_-]{1,10}$/

/** Whether `text` has the syntax of a code, generated or custom. */
export function isCode(text: string): boolean {
  return codeSyntax.test(text)
}

/** The fault of an alias. */
export type AliasFault = 'malformed' | 'reserved'

/** The fault of `alias`, if any. Does not check whether a link already has it. */
export function aliasFault(alias: string): AliasFault | undefined {
  if (!isCode(alias)) return 'malformed'
  return isReserved(alias) ? 'reserved' : undefined
}

/**
 * The code in the path of a request (without query); `undefined` for deeper paths, trailing
 * slashes, other characters and invalid escapes.
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
    return undefined // an invalid escape
  }
}
