// `GET /admin/links`: all links, in pages.
import type { RequestHandler } from 'express'
import { CODE_LENGTH_MAX, isCode } from '../../links/alias.ts'
import { SCAN_PAGE_MAX, type ScannedStore, type ScanRange } from '../../links/link-store.ts'
import { resultOrFailed } from '../../resilience/retry-until-deadline.ts'
import { invalidRequest } from '../field-faults.ts'
import { type FieldFault, sendProblem } from '../problem.ts'
import { type RenderDeps, renderPage } from './render-link.ts'

const LIMIT_DEFAULT = 100
const names: ReadonlySet<string> = new Set(['after', 'limit'])

/** Responds with a page of links. */
export function listLinks(
  deps: RenderDeps & { readonly links: ScannedStore },
  baseUrl: string,
): RequestHandler {
  return async (req, res) => {
    const range = parseRange(req.url)
    if ('fault' in range) {
      sendProblem(res, invalidRequest([range.fault]), baseUrl)
      return
    }
    const links = await resultOrFailed(deps.links.scan(range))
    if (links === 'failed') {
      const detail = 'The store has not returned the page: retry the request'
      sendProblem(res, { name: 'store-unavailable', detail }, baseUrl)
      return
    }
    res.set('Cache-Control', 'no-store').json(renderPage(links, range.max, deps))
  }
}

/** The range that the query in `url` selects, or why it selects none. */
function parseRange(url: string): ScanRange | { readonly fault: FieldFault } {
  const { searchParams } = new URL(url, 'http://localhost')
  for (const name of searchParams.keys()) {
    if (!names.has(name)) {
      const cause = `${JSON.stringify(name)} is unknown: allowed are after and limit`
      return faultOf('unknown-field', cause)
    }
    if (searchParams.getAll(name).length > 1)
      return faultOf('duplicate', `${name} occurs more than once`)
  }
  const after = searchParams.get('after') ?? undefined
  if (after !== undefined && !isCode(after)) {
    const allowed = `1 to ${CODE_LENGTH_MAX} letters, digits, - and _`
    return faultOf(
      'invalid-type',
      `after must consist of ${allowed}: it is ${JSON.stringify(after)}`,
    )
  }
  const limit = searchParams.get('limit') ?? String(LIMIT_DEFAULT)
  const max = /^\d{1,9}$/.test(limit) ? Number(limit) : 0
  if (max < 1 || max > SCAN_PAGE_MAX) {
    const allowed = `an integer from 1 to ${SCAN_PAGE_MAX}`
    return faultOf('out-of-range', `limit must be ${allowed}: it is ${JSON.stringify(limit)}`)
  }
  return { after, max }
}

/** The parameters are not in the body: as for headers, the pointer is empty. */
function faultOf(code: string, cause: string) {
  return { fault: { pointer: '', code, detail: `Cannot list links: ${cause}` } }
}
