// The format of `curtail export`: one link per line, as the admin API renders it.
import { decode, type Format, RECORD_CHARACTERS_MAX, type Rows } from '../format.ts'
import { codeIn, parseLinkRow } from '../link-row.ts'
import { linesOf } from './lines.ts'

/** `--format ndjson`. */
export const ndjson: Format = { name: 'ndjson', parse: (file) => parse(decode(file)) }

async function* parse(file: AsyncIterable<string>): Rows {
  let row = 0
  for await (const line of linesOf(file)) {
    if (line?.trim() === '') continue
    row++
    if (line === undefined) {
      const fault = `the line has more than ${RECORD_CHARACTERS_MAX} characters`
      yield { row, fault, code: null }
      continue
    }
    const value = parseJson(line)
    const parsed = parseLinkRow(value)
    if ('row' in parsed) yield { row, link: parsed.row }
    else yield { row, fault: parsed.fault, code: codeIn(value) }
  }
}

/** The JSON of a line; `undefined`, which no row is, if it is none. */
function parseJson(line: string): unknown {
  try {
    return JSON.parse(line) as unknown
  } catch {
    return undefined
  }
}
