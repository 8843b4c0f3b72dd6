// Bitly: the pages of GET /v4/groups/{group_guid}/bitlinks as JSON, or the CSV file of the web app.
// A link and each of its custom back-halves are one row each. A deleted link is imported as
// disabled; an archived one still redirects.
import * as z from 'zod'
import { decode, type Format, type ParsedRow, peek, type Rows } from '../format.ts'
import { csvRecords } from './csv-records.ts'
import { codeInUrl, rowOf } from './foreign-link.ts'
import { jsonRecords } from './json-records.ts'

const linkShape = z.object({
  link: z.string().nullish(),
  id: z.string().nullish(),
  long_url: z.string(),
  created_at: z.string().nullish(),
  custom_bitlinks: z.array(z.string()).nullish(),
  is_deleted: z.boolean().nullish(),
})

const LINK = 'Link'
const CUSTOM_LINK = 'Custom Link'
const DESTINATION = 'Destination URL'

/** `--format bitly`. */
export const bitly: Format = {
  name: 'bitly',
  async *parse(bytes) {
    const { first, file } = await peek(decode(bytes))
    yield* first === '{' || first === '[' ? parseJson(file) : parseCsv(file)
  },
}

async function* parseCsv(file: AsyncIterable<string>): Rows {
  for await (const record of csvRecords(file, headerFault)) {
    const { row } = record
    if ('fault' in record) {
      yield { row, fault: record.fault, code: null }
      continue
    }
    const { fields } = record
    const shortUrls = [fields.get(LINK), fields.get(CUSTOM_LINK)]
    yield* rowsOf(row, shortUrls, { target: fields.get(DESTINATION) ?? '' })
  }
}

function headerFault(names: readonly string[]): string | undefined {
  const missing = [LINK, DESTINATION].find((name) => !names.includes(name))
  return missing && `${missing} is missing`
}

async function* parseJson(file: AsyncIterable<string>): Rows {
  for await (const record of jsonRecords(file, 'links')) {
    const { row } = record
    if ('fault' in record) {
      yield { row, fault: record.fault, code: null }
      continue
    }
    const parsed = linkShape.safeParse(record.value)
    if (!parsed.success) {
      yield { row, fault: 'it is not a link of Bitly', code: null }
      continue
    }
    const { link, id, long_url: target, created_at: createdAt, is_deleted } = parsed.data
    const shortUrls = [link ?? id, ...(parsed.data.custom_bitlinks ?? [])]
    yield* rowsOf(row, shortUrls, { target, createdAt, isDisabled: is_deleted === true })
  }
}

/** The row of each different code of a link. */
function rowsOf(
  row: number,
  shortUrls: readonly (string | null | undefined)[],
  link: {
    readonly target: string
    readonly createdAt?: string | null | undefined
    readonly isDisabled?: boolean
  },
): ParsedRow[] {
  const codes = new Set(shortUrls.filter((url) => url != null && url !== '').map(codeOf))
  if (codes.size === 0) return [{ row, fault: 'it has no short URL', code: null }]
  return [...codes].map((code) => rowOf(row, { code, ...link }))
}

function codeOf(shortUrl: string | null | undefined): string {
  return codeInUrl(shortUrl ?? '')
}
