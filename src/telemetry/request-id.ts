// The id that names one request in every log line and answer: the edge's where it sent one.
import { randomBytes } from 'node:crypto'

const acceptable = /^[\x21-\x7e]{1,128}$/
const prefix = randomBytes(8).toString('hex')
let count = 0

/**
 * The request's id: `given` if it is 1–128 visible ASCII characters, else a new one. New ones are a
 * random part of this process and a running number: unique, but no secret.
 */
export function requestIdFrom(given: string | string[] | undefined): string {
  if (typeof given === 'string' && acceptable.test(given)) return given
  count = (count + 1) % Number.MAX_SAFE_INTEGER
  return `${prefix}-${count.toString(36)}`
}
