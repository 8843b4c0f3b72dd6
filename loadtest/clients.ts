// The requests of k6: create a link and resolve a code, each from the address of one client, which
// the edge reads from the header of one trusted proxy. Defines no load.
import { check } from 'k6'
import { SharedArray } from 'k6/data'
import http, { type RefinedResponse, type ResponseType } from 'k6/http'
import { given } from './shapes.ts'

/** The target of every link of a run. */
export const target = 'https://example.com/loadtest'

/** The address of a client: from 198.18.0.0/15, which is reserved for benchmarks (RFC 2544). */
export function addressOf(client: number): string {
  const index = client % given.clients
  return `198.${18 + ((index >> 16) & 1)}.${(index >> 8) & 255}.${index & 255}`
}

const keyHeader = given.apiKey === undefined ? {} : { 'X-API-Key': given.apiKey }

/** Creates a link as the client at `address`. */
export function createLink(address: string): RefinedResponse<'text'> {
  return http.post(`${given.baseUrl}/v1/urls`, JSON.stringify({ long_url: target }), {
    headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': address, ...keyHeader },
    responseType: 'text',
    tags: { name: 'POST /v1/urls' },
  })
}

/** Resolves a code as the client at `address`, without a request to the target. */
export function resolveCode(code: string, address: string): RefinedResponse<ResponseType> {
  return http.get(`${given.baseUrl}/${code}`, {
    headers: { 'X-Forwarded-For': address },
    redirects: 0,
    responseType: 'none',
    tags: { name: 'GET /{code}' },
  })
}

/** Checks for a redirect to the target of the run, or to any target with `CODES_FILE`. */
export function checkRedirect(response: RefinedResponse<ResponseType>): boolean {
  return check(response, {
    'redirected to the target': ({ status, headers }) => {
      const location = headers['Location']
      const isExpected = fileCodes.length > 0 ? location !== undefined : location === target
      return (status === 302 || status === 301) && isExpected
    },
  })
}

/** Checks for a new link. */
export function checkCreated(response: RefinedResponse<'text'>): boolean {
  return check(response, { created: ({ status }) => status === 201 })
}

/** Codes of existing links: the lines of the file that `CODES_FILE` names. */
const fileCodes = new SharedArray('codes', () => {
  const path = __ENV['CODES_FILE']
  if (path === undefined) return []
  return open(path)
    .split('\n')
    .filter((line) => line !== '')
})

/** The links of a run: k6 passes the result of `setup` to its functions. */
export interface Links {
  readonly codes: readonly string[]
}

/** Creates the links of a run, each as another client. Aborts the run if a create fails. */
export function createLinks(): Links {
  if (fileCodes.length > 0) return { codes: [] }
  const codes: string[] = []
  for (let i = 0; i < given.links; i++) {
    const response = createLink(addressOf(i))
    const url = response.status === 201 ? response.json('short_url') : undefined
    if (typeof url !== 'string') {
      throw new Error(
        `Cannot create link ${i} of ${given.links}: ${response.status} ${response.body}`,
      )
    }
    codes.push(url.slice(url.lastIndexOf('/') + 1))
  }
  return { codes }
}

/** The code at an index, modulo their number: from the file, or from the links of the run. */
export function codeAt({ codes }: Links, index: number): string {
  const all = fileCodes.length > 0 ? fileCodes : codes
  return all[index % all.length] ?? ''
}
