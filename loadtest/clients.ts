// What the clients of k6 do at the edge: create a link, follow a code, each with an address of its
// own that one trusted proxy vouches for. Decides nothing about load.
import { check } from 'k6'
import { SharedArray } from 'k6/data'
import http, { type RefinedResponse, type ResponseType } from 'k6/http'
import { given } from './shapes.ts'

/** Where every link of a run leads. */
export const target = 'https://example.com/loadtest'

/** The address of the client of this number: one of 198.18.0.0/15, which nobody has. */
export function addressOf(client: number): string {
  const place = client % given.clients
  return `198.${18 + ((place >> 16) & 1)}.${(place >> 8) & 255}.${place & 255}`
}

/** Asks for a link as the client at `address`. */
export function createLink(address: string): RefinedResponse<'text'> {
  return http.post(`${given.baseUrl}/v1/urls`, JSON.stringify({ long_url: target }), {
    headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': address },
    responseType: 'text',
    tags: { name: 'POST /v1/urls' },
  })
}

/** Follows a code as the client at `address`, and not the redirect. */
export function resolveCode(code: string, address: string): RefinedResponse<ResponseType> {
  return http.get(`${given.baseUrl}/${code}`, {
    headers: { 'X-Forwarded-For': address },
    redirects: 0,
    responseType: 'none',
    tags: { name: 'GET /{code}' },
  })
}

/** Whether it is the redirect of a link of this run, or of a file of codes. */
export function checkRedirect(response: RefinedResponse<ResponseType>): boolean {
  return check(response, {
    'redirected to the target': ({ status, headers }) => {
      const location = headers['Location']
      const isRight = fileCodes.length > 0 ? location !== undefined : location === target
      return (status === 302 || status === 301) && isRight
    },
  })
}

/** Whether it is a new link. */
export function checkCreated(response: RefinedResponse<'text'>): boolean {
  return check(response, { created: ({ status }) => status === 201 })
}

/** Codes of links that are there already, one a line, of the file that `CODES_FILE` names. */
const fileCodes = new SharedArray('codes', () => {
  const path = __ENV['CODES_FILE']
  if (path === undefined) return []
  return open(path)
    .split('\n')
    .filter((line) => line !== '')
})

/** What the functions of a run are given by its `setup`. */
export interface Links {
  readonly codes: readonly string[]
}

/** Makes the links of a run, each by another client. Ends the run where one is refused. */
export function createLinks(): Links {
  if (fileCodes.length > 0) return { codes: [] }
  const codes: string[] = []
  for (let i = 0; i < given.links; i++) {
    const response = createLink(addressOf(i))
    const url = response.status === 201 ? response.json('short_url') : undefined
    if (typeof url !== 'string') {
      throw new Error(`link ${i} of ${given.links} was not made: ${response.status} ${response.body}`)
    }
    codes.push(url.slice(url.lastIndexOf('/') + 1))
  }
  return { codes }
}

/** The code of this number, of the file or of those that were made. */
export function codeAt({ codes }: Links, place: number): string {
  const all = fileCodes.length > 0 ? fileCodes : codes
  return all[place % all.length] ?? ''
}
