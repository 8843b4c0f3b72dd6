// Creates links over the HTTP API with the load generator: the requests of the benchmarks.
import { type Driven, prepareLoad } from './drive.ts'

/** How many connections create at a time. */
export const CREATE_CONNECTIONS = 64

const MS_MAX = 300_000
const locationCode = /\r\nlocation: [^\r]*\/([0-9A-Za-z]{7})\r\n/i

let created = 0

/** A request to create a link to a target of its own; `header`, with its line break, is added. */
export function createRequest(header = ''): Buffer {
  const id = String(++created).padStart(12, '0')
  const target = `https://example.com/a/path/of/usual/length?id=${id}`
  const body = `{"long_url":"${target}"}`
  return Buffer.from(
    `POST /v1/urls HTTP/1.1\r\nHost: s.example\r\nContent-Type: application/json\r\n${header}` +
      `Content-Length: ${body.length}\r\n\r\n${body}`,
  )
}

/** Creates so many links and resolves to their codes. */
export async function createLinks(given: { port: number; links: number }): Promise<string[]> {
  const codes: string[] = []
  const driver = await prepareCreates({
    port: given.port,
    linksMax: given.links,
    msMax: MS_MAX,
    onCode: (code) => codes.push(code),
  })
  await driver.run()
  if (codes.length !== given.links) throw new Error(`only ${codes.length} links were created`)
  return codes
}

/** Opens the connections of a load of creates, which ends by count or by time. */
export function prepareCreates(given: {
  port: number
  linksMax: number
  msMax: number
  onCode?: (code: string) => void
}): Promise<{ run(): Promise<Driven> }> {
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
