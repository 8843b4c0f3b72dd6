// The lines of an operator list. Pods and commands read a list with this function, so that a
// command can change each line that the pods use.

/** A line of a list. */
export interface ListLine {
  /** Without the spaces, tabs and carriage returns around it. */
  readonly line: string
  /** From 1. */
  readonly number: number
}

const BYTE_ORDER_MARK = '\ufeff'

/**
 * The lines of a file, without its byte order mark. Other characters that Unicode calls white space
 * stay: JSON does not ignore them.
 */
export function* linesOf(content: string): Generator<ListLine> {
  let number = 0
  for (let start = 0; start < content.length;) {
    const found = content.indexOf('\n', start)
    const end = found < 0 ? content.length : found
    yield { line: trimLine(content.slice(start, end), ++number), number }
    start = end + 1
  }
}

/** Removes the spaces, tabs and CRs around a line, and the byte order mark of line 1. */
export function trimLine(line: string, number: number): string {
  let start = number === 1 && line.startsWith(BYTE_ORDER_MARK) ? 1 : 0
  let end = line.length
  while (start < end && isSpace(line[start])) start++
  while (end > start && isSpace(line[end - 1])) end--
  return line.slice(start, end)
}

function isSpace(character: string | undefined): boolean {
  return character === ' ' || character === '\t' || character === '\r'
}
