// A simple CSV file: any columns of the admin API's format of a link, in any order.
import { decode, type Format, type Rows } from '../format.ts'
import { parseLinkRow } from '../link-row.ts'
import { csvRecords } from './csv-records.ts'

const required = ['short_code', 'long_url']
const columns = [...required, 'created_at', 'expires_at', 'creator_id', 'state']

/** `--format csv`. */
export const csv: Format = { name: 'csv', parse: (file) => parse(decode(file)) }

async function* parse(file: AsyncIterable<string>): Rows {
  for await (const record of csvRecords(file, headerFault)) {
    const { row } = record
    if ('fault' in record) {
      yield { row, fault: record.fault, code: null }
      continue
    }
    const members = [...record.fields].map(([name, value]) => [name, value === '' ? null : value])
    const parsed = parseLinkRow(Object.fromEntries(members))
    if ('row' in parsed) yield { row, link: parsed.row }
    else yield { row, fault: parsed.fault, code: record.fields.get('short_code') ?? null }
  }
}

function headerFault(names: readonly string[]): string | undefined {
  const unknown = names.find((name) => !columns.includes(name))
  const missing = required.find((name) => !names.includes(name))
  if (unknown === undefined && missing === undefined) return undefined
  const problem =
    missing === undefined ? `${JSON.stringify(unknown)} is unknown` : `${missing} is missing`
  return `${problem}; allowed are ${columns.join(', ')}`
}
