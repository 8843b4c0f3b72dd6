// An admin API with links in memory, for tests of its clients: records the requests, and fails as
// scripted.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A link in the format of the admin API. */
export type ApiLink = Record<'short_code' | 'created_at' | 'state', string> &
  Record<'long_url' | 'expires_at' | 'creator_id', string | null>

/** An active link with this code. */
export function apiLink(code: string, change: Partial<ApiLink> = {}): ApiLink {
  return {
    short_code: code,
    long_url: `https://example.com/${code}`,
    created_at: '2026-01-02T03:04:05.678Z',
    expires_at: null,
    creator_id: null,
    state: 'active',
    ...change,
  }
}

/**
 * What the server does before its response to a request, or instead of it: then it returns `true`.
 * `request` is its recorded line.
 */
export type ApiFault = (request: string, res: ServerResponse) => boolean | Promise<boolean>

/** A running API. */
export interface LinksApi {
  readonly url: string
  readonly links: Map<string, ApiLink>
  /** Such as `POST /admin/links/a/disable`. */
  readonly requests: string[]
  /** The header `X-Operator` of each request. */
  readonly operators: (string | undefined)[]
  /** The maximum number of requests that were in flight together. */
  readonly parallelMax: () => number
  readonly close: () => void
}

/** Starts it with these links, in their order; `fault` returns whether it handled the request. */
export async function startLinksApi(
  given: readonly ApiLink[],
  fault: ApiFault = () => false,
): Promise<LinksApi> {
  const links = new Map(given.map((link) => [link.short_code, link]))
  const requests: string[] = []
  const operators: (string | undefined)[] = []
  let [inFlight, parallelMax] = [0, 0]
  const server = createServer((req, res) => {
    const line = `${req.method ?? ''} ${req.url ?? ''}`
    requests.push(line)
    operators.push(req.headers['x-operator']?.toString())
    parallelMax = Math.max(parallelMax, ++inFlight)
    res.on('close', () => inFlight--)
    void Promise.resolve(fault(line, res)).then((isHandled) => {
      if (!isHandled) setImmediate(() => res.end(respond(links, req, res)))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  const url = `http://127.0.0.1:${port}`
  return { url, links, requests, operators, parallelMax: () => parallelMax, close }
}

function respond(links: Map<string, ApiLink>, req: IncomingMessage, res: ServerResponse): string {
  const { pathname, searchParams } = new URL(req.url ?? '', 'http://localhost')
  const [, , , code, verb] = pathname.split('/')
  if (code === undefined) {
    const [after, limit] = [searchParams.get('after'), Number(searchParams.get('limit'))]
    if (limit === 0) {
      res.statusCode = 422
      return JSON.stringify({ detail: 'Cannot list links: limit must be an integer from 1' })
    }
    const all = [...links.values()]
    const first = after === null ? 0 : all.findIndex((link) => link.short_code === after) + 1
    const page = all.slice(first, first + limit)
    return JSON.stringify({
      links: page,
      next: page.length < limit ? null : page.at(-1)?.short_code,
    })
  }
  const link = links.get(code)
  if (link === undefined) {
    res.statusCode = 404
    return JSON.stringify({ detail: 'No record has this code' })
  }
  if (verb !== undefined && link.state !== 'deleted') {
    link.state = verb === 'disable' ? 'disabled' : 'active'
  }
  return JSON.stringify(link)
}
