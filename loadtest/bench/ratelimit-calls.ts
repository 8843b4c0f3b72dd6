// The calls of the benchmark of the limiter, and the rules of both limiters in the format that both
// support.

/** The rules: fixed windows whose limits the load does not reach, except that of the hot key. */
export const benchRules = `domain: bench
descriptors:
  - {key: ip, rate_limit: {unit: minute, requests_per_unit: 100000000}}
  - key: route
    value: create
    descriptors: [{key: ip, rate_limit: {unit: hour, requests_per_unit: 1000000000}}]
  - {key: user, rate_limit: {unit: day, requests_per_unit: 1000000000}}
  - {key: hot, rate_limit: {unit: day, requests_per_unit: 10}}
`

/** The shapes of calls: one descriptor, three, or one that exceeds its limit. */
export const shapes = ['one', 'three', 'hot'] as const

/** The shape of a call. */
export type Shape = (typeof shapes)[number]

/** The number of clients, whose calls are sent in turn. */
export const CLIENTS = 10_000

type Entries = readonly (readonly [key: string, value: string])[]

/** The descriptors of a client's call. */
export function descriptorsOf(shape: Shape, client: number): readonly Entries[] {
  const ip = `10.${(client >> 16) & 255}.${(client >> 8) & 255}.${client & 255}/32`
  const one: Entries = [['ip', ip]]
  if (shape === 'one') return [one]
  if (shape === 'hot') return [[['hot', 'one']]]
  const route: Entries = [
    ['route', 'create'],
    ['ip', ip],
  ]
  return [one, route, [['user', `u${client}`]]]
}

/** The calls of all clients, as RateLimitRequest messages. */
export function requestsOf(shape: Shape): Buffer[] {
  const clients = shape === 'hot' ? 1 : CLIENTS
  return Array.from({ length: clients }, (_, client) => {
    const descriptors = descriptorsOf(shape, client).map((entries) => {
      const pairs = entries.map(([key, value]) =>
        field(1, [stringField(1, key), stringField(2, value)]),
      )
      return field(2, pairs)
    })
    return Buffer.concat([stringField(1, 'bench'), ...descriptors])
  })
}

/** A field of wire type 2, shorter than 128 bytes. */
function field(number: number, fields: readonly Buffer[]): Buffer {
  const body = Buffer.concat(fields)
  if (body.length > 127) throw new Error(`a field of ${body.length} bytes is too long here`)
  return Buffer.concat([Buffer.from([(number << 3) | 2, body.length]), body])
}

function stringField(number: number, value: string): Buffer {
  return field(number, [Buffer.from(value)])
}
