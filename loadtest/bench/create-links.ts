// Creates links over the HTTP API with the load generator, for the benchmarks.
import { type LoadFigures, prepareLoad } from './drive.ts'

/** The number of connections that create links. */
export const CREATE_CONNECTIONS = 64

const MS_MAX = 600_000
const locationCode = /\r\nlocation: [^\r]*\/([0-9A-Za-z]{7})\r\n/i

let created = 0

/** A request to create a link to a new target, with an optional `header` line (with its CRLF). */
export function createRequest(header = ''): Buffer {
  const id = String(++created).padStart(12, '0')
  const target = `https://example.com/a/path/of/usual/length?id=${id}`
  const body = `{"long_url":"${target}"}`
  return Buffer.from(
    `POST /v1/urls HTTP/1.1\r\nHost: s.example\r\nContent-Type: application/json\r\n${header}` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
  )
}

/** Creates `links` links and resolves to their codes. */
export async function createLinks(given: { port: number; links: number }): Promise<string[]> {
  const codes: string[] = []
  const driver = await prepareCreates({
    port: given.port,
    linksMax: given.links,
    msMax: MS_MAX,
    onCode: (code) => codes.push(code),
  })
  await driver.run()
  if (codes.length !== given.links)
    throw new Error(`Cannot create ${given.links} links: only ${codes.length} were created`)
  return codes
}

/** Opens the connections of a load of creates, which a count or a time limits. */
export function prepareCreates(given: {
  port: number
  linksMax: number
  msMax: number
  onCode?: (code: string) => void
}): Promise<{ run(): Promise<LoadFigures> }> {
  const { port, linksMax, msMax, onCode } = given
  return prepareLoad({
    port,
    connections: Math.min(CREATE_CONNECTIONS, linksMax),
    request: () => createRequest(),
    expectedStatuses: [201],
    requestsMax: linksMax,
    msMax,
    ...(onCode !== undefined && {
      onResponse: ({ text }) => {
        onCode(locationCode.exec(text)?.[1] ?? '')
      },
    }),
  })
}
