// The requests of the benchmark `path`: codes by Zipf's law, from many addresses or from fewer that
// are equally or unequally busy.
import { createRandom } from '../../test/kit/random.ts'
import { filledCode } from './fill-links.ts'
import { drawZipf } from './zipf.ts'

/** With it, a tenth of the links gets nine tenths of the requests. */
export const LINK_EXPONENT = 1.08
const SEED = 12_000
const CLIENT_EXPONENT = 1

/** `public`: a million equally busy addresses; `nat`: 10,000; `zipf`: 10,000 by Zipf's law. */
export type LoadName = 'public' | 'nat' | 'zipf'

const addresses: Readonly<Record<LoadName, number>> = {
  public: 1_000_000,
  nat: 10_000,
  zipf: 10_000,
}

/** Generators of serialised requests. */
export interface Requests {
  readonly redirect: () => Buffer
  readonly create: () => Buffer
}

/** The requests of a load for links 0 to `links` − 1; the same at every start. */
export function requestsOf(load: LoadName, links: number): Requests {
  const { int } = createRandom(SEED)
  const fraction = 2 ** 31
  const random = () => int(fraction) / fraction
  const draw = drawZipf({ count: links, exponent: LINK_EXPONENT, random })
  const count = addresses[load]
  const drawClient = drawZipf({ count, exponent: load === 'zipf' ? CLIENT_EXPONENT : 0, random })
  const headers = () => {
    const client = drawClient()
    const address = `10.${client >> 16}.${(client >> 8) & 255}.${client & 255}`
    return `Host: 127.0.0.1\r\nX-Forwarded-For: ${address}\r\n`
  }
  const body = JSON.stringify({ long_url: 'https://example.com/a/path/of/usual/length?id=new' })
  const rest = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  return {
    redirect: () =>
      Buffer.from(`GET /${filledCode(draw())} HTTP/1.1\r\n${headers()}\r\n`, 'latin1'),
    create: () => Buffer.from(`POST /v1/urls HTTP/1.1\r\n${headers()}${rest}`, 'latin1'),
  }
}
