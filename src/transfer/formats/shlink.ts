// Shlink: the CSV file of its web client, or the pages of GET /rest/v3/short-urls as JSON. Only the
// JSON has expiry times, and limits that a link of Curtail cannot have.
import * as z from 'zod'
import {
  decode,
  type Format,
  type ParseContext,
  type ParsedRow,
  peek,
  type Rows,
  rowsOf,
} from '../format.ts'
import { utcTimeOf } from '../utc-time.ts'
import { csvRecords } from './csv-records.ts'
import { rowOf } from './foreign-link.ts'
import { jsonRows } from './json-records.ts'

const linkShape = z.object({
  shortCode: z.string(),
  longUrl: z.string(),
  dateCreated: z.string().nullish(),
  meta: z
    .object({
      validSince: z.string().nullish(),
      validUntil: z.string().nullish(),
      maxVisits: z.number().nullish(),
    })
    .nullish(),
  hasRedirectRules: z.boolean().nullish(),
})

/** `--format shlink`. */
export const shlink: Format = {
  name: 'shlink',
  async *parse(bytes, context) {
    const { first, file } = await peek(decode(bytes))
    yield* first === '{' || first === '[' ? parseJson(file, context) : parseCsv(file)
  },
}

function parseCsv(file: AsyncIterable<string>): Rows {
  return rowsOf(csvRecords(file, headerFault), (row, fields) => {
    const code = fields.get('shortCode') ?? ''
    const target = fields.get('longUrl') ?? ''
    return [rowOf(row, { code, target, createdAt: fields.get('createdAt') })]
  })
}

function headerFault(names: readonly string[]): string | undefined {
  const missing = ['shortCode', 'longUrl'].find((name) => !names.includes(name))
  return missing && `${missing} is missing`
}

function parseJson(file: AsyncIterable<string>, context: ParseContext): Rows {
  const links = { list: 'data', shape: linkShape, name: 'a short URL of Shlink' }
  return jsonRows(file, links, (row, link) => [linkOf(row, link, context)])
}

function linkOf(row: number, link: z.output<typeof linkShape>, { nowMs }: ParseContext): ParsedRow {
  const { shortCode: code, longUrl: target, dateCreated: createdAt, meta } = link
  const since = utcTimeOf(meta?.validSince ?? '')
  const unsupported = {
    maxVisits: meta?.maxVisits != null,
    'redirect rules': link.hasRedirectRules === true,
    'a validSince in the future': since !== undefined && Date.parse(since) > nowMs,
  }
  const has = Object.entries(unsupported).find(([, isUsed]) => isUsed)?.[0]
  if (has !== undefined) {
    return { row, fault: `it has ${has}, which a link of Curtail cannot have`, code }
  }
  return rowOf(row, { code, target, createdAt, expiresAt: meta?.validUntil })
}
