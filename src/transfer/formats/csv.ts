// A simple CSV file: any columns of the admin API's format of a link, in any order.
import { decode, type Format, type ParsedRow, rowsOf } from '../format.ts'
import { parseLinkRow } from '../link-row.ts'
import { type CsvFields, csvRecords } from './csv-records.ts'

const required = ['short_code', 'long_url']
const columns = [...required, 'created_at', 'expires_at', 'creator_id', 'state']

/** `--format csv`. */
export const csv: Format = {
  name: 'csv',
  parse: (bytes) =>
    rowsOf(csvRecords(decode(bytes), headerFault), (row, fields) => [linkOf(row, fields)]),
}

function linkOf(row: number, fields: CsvFields): ParsedRow {
  const members = [...fields].map(([name, value]) => [name, value === '' ? null : value])
  const parsed = parseLinkRow(Object.fromEntries(members))
  if ('row' in parsed) return { row, link: parsed.row }
  return { row, fault: parsed.fault, code: fields.get('short_code') ?? null }
}

function headerFault(names: readonly string[]): string | undefined {
  const unknown = names.find((name) => !columns.includes(name))
  const missing = required.find((name) => !names.includes(name))
  if (unknown === undefined && missing === undefined) return undefined
  const problem =
    missing === undefined ? `${JSON.stringify(unknown)} is unknown` : `${missing} is missing`
  return `${problem}; allowed are ${columns.join(', ')}`
}
