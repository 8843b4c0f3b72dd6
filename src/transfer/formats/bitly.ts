// Bitly: the pages of GET /v4/groups/{group_guid}/bitlinks as JSON, or the CSV file of the web app.
// A link and each of its custom back-halves are one row each. A deleted link is imported as
// disabled; an archived one still redirects.
import * as z from 'zod'
import { decode, type Format, type ParsedRow, peek, type Rows, rowsOf } from '../format.ts'
import { csvRecords } from './csv-records.ts'
import { codeInUrl, rowOf } from './foreign-link.ts'
import { jsonRows } from './json-records.ts'

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

function parseCsv(file: AsyncIterable<string>): Rows {
  return rowsOf(csvRecords(file, headerFault), (row, fields) => {
    const shortUrls = [fields.get(LINK), fields.get(CUSTOM_LINK)]
    return linksOf(row, shortUrls, { target: fields.get(DESTINATION) ?? '' })
  })
}

function headerFault(names: readonly string[]): string | undefined {
  const missing = [LINK, DESTINATION].find((name) => !names.includes(name))
  return missing && `${missing} is missing`
}

function parseJson(file: AsyncIterable<string>): Rows {
  const links = { list: 'links', shape: linkShape, name: 'a link of Bitly' }
  return jsonRows(file, links, (row, { link, id, custom_bitlinks, ...others }) => {
    const { long_url: target, created_at: createdAt, is_deleted } = others
    const shortUrls = [link ?? id, ...(custom_bitlinks ?? [])]
    return linksOf(row, shortUrls, { target, createdAt, isDisabled: is_deleted === true })
  })
}

/** The row of each different code of a link. */
function linksOf(
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
