// Reads a list of codes: one per line, or the JSON lines that `link disable --json` prints. The
// whole list is checked before it is used.
import * as z from 'zod'
import { OperatorError } from '../process/role.ts'
import { linesOf } from '../transfer/formats/lines.ts'

const CODES_MAX = 1_000_000
const SHOWN_CHARACTERS_MAX = 40
const rowShape = z.object({ short_code: z.string() })

/** A code, and the first line that has it. */
export interface ListedCode {
  readonly code: string
  readonly line: number
}

/**
 * The codes of a file, each once, in its order; `name` names the file in errors. Empty lines and
 * what follows a `#` are ignored. Throws OperatorError for a line that `isCode` rejects.
 */
export async function readCodeList(
  file: AsyncIterable<string>,
  { name, isCode }: { readonly name: string; readonly isCode: (code: string) => boolean },
): Promise<readonly ListedCode[]> {
  const codes = new Map<string, number>()
  let line = 0
  for await (const content of linesOf(file)) {
    line++
    const code = codeOf(content)
    if (code === '') continue
    if (code === undefined || !isCode(code)) {
      const shown =
        content === undefined ? 'too long' : JSON.stringify(content.slice(0, SHOWN_CHARACTERS_MAX))
      const allowed = 'a code, or a JSON object with a code as short_code'
      throw new OperatorError(`line ${line} of ${name} must be ${allowed}: it is ${shown}`)
    }
    if (!codes.has(code)) codes.set(code, line)
    if (codes.size > CODES_MAX) {
      throw new OperatorError(`${name} must have at most ${CODES_MAX} codes: split it`)
    }
  }
  return [...codes].map(([code, at]) => ({ code, line: at }))
}

/** The code of a line; '' if it has none, `undefined` if it is invalid. */
function codeOf(content: string | undefined): string | undefined {
  const trimmed = content?.trim()
  if (trimmed?.startsWith('{') !== true) return trimmed?.replace(/\s*#.*$/, '')
  try {
    return rowShape.safeParse(JSON.parse(trimmed)).data?.short_code
  } catch {
    return undefined
  }
}
