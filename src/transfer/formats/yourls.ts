// YOURLS: the table yourls_url as CSV with a header line (as phpMyAdmin exports it), or the file of
// the plugin Import Export, which has only source, target and hits.
import { decode, type Format, type ParsedRow, rowsOf } from '../format.ts'
import { type CsvFields, csvRecords } from './csv-records.ts'
import { rowOf } from './foreign-link.ts'

/** `--format yourls`. */
export const yourls: Format = {
  name: 'yourls',
  parse: (bytes) =>
    rowsOf(csvRecords(decode(bytes), headerFault), (row, fields) => [linkOf(row, fields)]),
}

function linkOf(row: number, fields: CsvFields): ParsedRow {
  const keyword = fields.get('keyword')
  if (keyword === undefined) {
    const code = (fields.get('source') ?? '').replace(/^\/|\/$/g, '')
    return rowOf(row, { code, target: fields.get('target') ?? '' })
  }
  const createdAt = fields.get('timestamp')
  return rowOf(row, { code: keyword, target: fields.get('url') ?? '', createdAt })
}

function headerFault(names: readonly string[]): string | undefined {
  const has = (...wanted: readonly string[]) => wanted.every((name) => names.includes(name))
  if (has('keyword', 'url') || has('source', 'target')) return undefined
  return 'it must name keyword and url, or source and target'
}
