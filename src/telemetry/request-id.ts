// The id of a request in log lines and responses: the edge's if present, otherwise a new one.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const acceptable = /^[\x21-\x7e]{1,128}$/
const prefix = randomBytes(8).toString('hex')
let count = 0

/**
 * The request's id: `given` if it is 1–128 visible ASCII characters, otherwise a new one, composed
 * of a random prefix of this process and a sequence number: unique, but not secret.
 */
export function requestIdFrom(given: string | string[] | undefined): string {
  if (typeof given === 'string' && acceptable.test(given)) return given
  count = (count + 1) % Number.MAX_SAFE_INTEGER
  return `${prefix}-${count.toString(36)}`
}

/** The id of a request. The first call stores a new one in the header, so that all calls agree. */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id']
  const id = requestIdFrom(given)
  if (id !== given) headers['x-request-id'] = id
  return id
}
