// A client for tests of the public HTTP: bare connections kept alive, every answer held against the
// service's own OpenAPI document.
import { openAsker } from './asker.ts'
import { createOpenApiCheck } from './openapi-check.ts'
import { type Answer, ANSWER_MS_MAX, type Ask, jsonOf } from './raw-http.ts'

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
  const asker = openAsker(port, { from, msMax: ANSWER_MS_MAX })
  const check = createOpenApiCheck(jsonOf(await asker.ask({ path: '/openapi.json' })))
  const ask = async (request: Ask, msMax?: number) => {
    const answer = await asker.ask(request, msMax)
    check(request, answer)
    return answer
  }
  return {
    ask,
    create: (body, headers) => ask(createAsk(body, headers)),
    follow: (code) => ask({ path: `/${code}` }),
    close() {
      asker.close()
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
