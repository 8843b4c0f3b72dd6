// Kutt: the pages of GET /api/v2/links as JSON. A banned link is imported as disabled.
import * as z from 'zod'
import { decode, type Format, type ParsedRow } from '../format.ts'
import { rowOf } from './foreign-link.ts'
import { jsonRows } from './json-records.ts'

const linkShape = z.object({
  address: z.string(),
  target: z.string(),
  created_at: z.string().nullish(),
  expire_in: z.string().nullish(),
  banned: z.union([z.boolean(), z.literal([0, 1])]).nullish(), // a number with SQLite and MySQL
  password: z.boolean().nullish(),
})

/** `--format kutt`. */
export const kutt: Format = {
  name: 'kutt',
  parse: (bytes) =>
    jsonRows(
      decode(bytes),
      { list: 'data', shape: linkShape, name: 'a link of Kutt' },
      (row, link) => [linkOf(row, link)],
    ),
}

function linkOf(row: number, link: z.output<typeof linkShape>): ParsedRow {
  const { address: code, target, created_at: createdAt, expire_in: expiresAt } = link
  if (link.password === true) {
    return { row, fault: 'it has a password, which a link of Curtail cannot have', code }
  }
  return rowOf(row, { code, target, createdAt, expiresAt, isDisabled: Boolean(link.banned) })
}
