// Kutt: the pages of GET /api/v2/links as JSON. A banned link is imported as disabled.
import * as z from 'zod'
import { decode, type Format, type ParsedRow, type Rows } from '../format.ts'
import { rowOf } from './foreign-link.ts'
import { jsonRecords } from './json-records.ts'

const linkShape = z.object({
  address: z.string(),
  target: z.string(),
  created_at: z.string().nullish(),
  expire_in: z.string().nullish(),
  banned: z.union([z.boolean(), z.literal([0, 1])]).nullish(), // a number with SQLite and MySQL
  password: z.boolean().nullish(),
})

/** `--format kutt`. */
export const kutt: Format = { name: 'kutt', parse: (file) => parse(decode(file)) }

async function* parse(file: AsyncIterable<string>): Rows {
  for await (const record of jsonRecords(file, 'data')) {
    const { row } = record
    if ('fault' in record) {
      yield { row, fault: record.fault, code: null }
      continue
    }
    const parsed = linkShape.safeParse(record.value)
    if (parsed.success) yield linkOf(row, parsed.data)
    else yield { row, fault: 'it is not a link of Kutt', code: null }
  }
}

function linkOf(row: number, link: z.output<typeof linkShape>): ParsedRow {
  const { address: code, target, created_at: createdAt, expire_in: expiresAt } = link
  if (link.password === true) {
    return { row, fault: 'it has a password, which a link of Curtail cannot have', code }
  }
  return rowOf(row, { code, target, createdAt, expiresAt, isDisabled: Boolean(link.banned) })
}
