// The format of `curtail export`: one link per line, as the admin API renders it.
import { decode, type Format, RECORD_CHARACTERS_MAX, type Rows } from '../format.ts'
import { codeIn, parseLinkRow } from '../link-row.ts'
import { linesOf } from './lines.ts'

/** `--format ndjson`. */
export const ndjson: Format = { name: 'ndjson', parse: (file) => parse(decode(file)) }

async function* parse(file: AsyncIterable<string>): Rows {
  let row = 0
  let line = 0
  for await (const content of linesOf(file)) {
    line++
    if (content?.trim() === '') continue
    row++
    if (content === undefined) {
      const fault = `the line has more than ${RECORD_CHARACTERS_MAX} characters`
      yield { row, line, fault, code: null }
      continue
    }
    const value = parseJson(content)
    const parsed = parseLinkRow(value)
    if ('row' in parsed) yield { row, line, link: parsed.row }
    else yield { row, line, fault: parsed.fault, code: codeIn(value) }
  }
}

/** The value of a line of JSON; `undefined`, which is not a valid row, if the line is not JSON. */
function parseJson(line: string): unknown {
  try {
    return JSON.parse(line) as unknown
  } catch {
    return undefined
  }
}
