// A client for tests of the public HTTP: bare connections kept alive, every answer held against the
// service's own OpenAPI document.
import { createOpenApiCheck } from './openapi-check.ts'
import {
  type Answer,
  type Ask,
  headerOf,
  jsonOf,
  openConnection,
  type RawConnection,
} from './raw-http.ts'

/** Asks one service; any number of requests at once, each on a connection of its own. */
export interface Client {
  ask(ask: Ask, msMax?: number): Promise<Answer>
  /** POST /v1/urls with this body as JSON; text goes as it is. */
  create(body: unknown, headers?: Ask['headers']): Promise<Answer>
  /** GET /{code}. */
  follow(code: string): Promise<Answer>
  close(): void
}

/** Opens a client of the service at `port`, which comes from the address `from`. */
export async function openClient(port: number, from?: string): Promise<Client> {
  const idle: RawConnection[] = []
  const exchange = async (ask: Ask, msMax?: number) => {
    let connection = idle.pop()
    while (connection?.isEnded === true) connection = idle.pop()
    connection ??= await openConnection(port, from)
    const answer = await connection.exchange(ask, msMax)
    if (headerOf(answer, 'Connection') === 'close') connection.close()
    else idle.push(connection)
    return answer
  }
  const check = createOpenApiCheck(jsonOf(await exchange({ path: '/openapi.json' })))
  const ask = async (request: Ask, msMax?: number) => {
    const answer = await exchange(request, msMax)
    check(request, answer)
    return answer
  }
  return {
    ask,
    create: (body, headers) => ask(createAsk(body, headers)),
    follow: (code) => ask({ path: `/${code}` }),
    close() {
      for (const connection of idle.splice(0)) connection.close()
    },
  }
}

/** A request that creates a link. */
export function createAsk(body: unknown, headers?: Ask['headers']): Ask {
  return {
    method: 'POST',
    path: '/v1/urls',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  }
}

/** The code of the link that a 201 tells of. */
export function codeOf(answer: Answer): string {
  const { short_url: shortUrl } = jsonOf(answer)
  if (answer.status !== 201 || typeof shortUrl !== 'string') {
    throw new Error(`no link was created: ${answer.status} ${answer.body.toString()}`)
  }
  return shortUrl.slice(shortUrl.lastIndexOf('/') + 1)
}
