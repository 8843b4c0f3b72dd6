// Statements outside the calls, on a fake of the driver's client: probes, statements through each
// node, and statements that are prepared at the first connection.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { type Client, errors } from 'cassandra-driver'
import { createProbe, createWarmUp, runOnEach } from './calls.ts'
import { kindOptions } from './statement-kinds.ts'

interface FakeHost {
  readonly address: string
  readonly datacenter: string
  readonly isUp: () => boolean
}

const hostOf = (address: string, datacenter = 'dc1', up = true): FakeHost => ({
  ...{ address, datacenter, isUp: () => up },
})
const [a, b, c, d] = [hostOf('a'), hostOf('b'), hostOf('c'), hostOf('d')]
const others = [hostOf('down', 'dc1', false), hostOf('far', 'dc2'), hostOf('both', 'dc2', false)]

/** The arguments of each statement that the client has received. */
let sent: [cql: string, values: unknown, options: { host?: FakeHost }][]
let hosts: FakeHost[]
/** The result of a statement, by its first argument and its node. */
let respond: (cql: string, host: FakeHost | undefined) => Promise<unknown>
let logged: unknown[]

const client = {
  hosts: { values: () => hosts },
  execute: (...args: (typeof sent)[number]) => {
    sent.push(args)
    return respond(args[0], args[2].host)
  },
} as unknown as Client

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] })
  sent = []
  logged = []
  hosts = [a, ...others, b, c, d]
  respond = () => Promise.resolve({ rows: [] })
})
afterEach(() => {
  jest.restoreAllMocks()
  jest.useRealTimers()
})

const turn = () => new Promise((resolve) => setImmediate(resolve))
const response = (code: number) => new errors.ResponseError(code, 'rejected')
const addresses = () => sent.map(([, , { host }]) => host?.address)
/** The times of the successes that a probe notes. */
async function probe() {
  const successes: number[] = []
  createProbe(client, 'dc1')({ noteSuccess: (nowMs) => successes.push(nowMs) })
  jest.advanceTimersByTime(30)
  await turn()
  return successes
}

test.each([
  { random: 0, nodes: ['a', 'b', 'c'] },
  { random: 0.26, nodes: ['b', 'c', 'd'] },
  { random: 0.74, nodes: ['c', 'd', 'a'] },
  { random: 0.999, nodes: ['d', 'a', 'b'] },
])('a probe uses three of the local nodes that are up, in turn: $nodes', async (given) => {
  jest.spyOn(Math, 'random').mockReturnValue(given.random)
  await probe()
  expect(addresses()).toEqual(given.nodes)
})

test.each([
  { up: [a, b], nodes: ['a', 'b'] },
  { up: [], nodes: [] },
])('with fewer nodes, a probe uses each of them: $nodes', async ({ up, nodes }) => {
  hosts = [...others, ...up]
  await probe()
  expect(addresses().toSorted()).toEqual(nodes)
})

test('a probe reads a different invalid code, as a claim does, through each node', async () => {
  await probe()
  await probe()
  const { options } = kindOptions['serial-read']
  for (const [cql, values, given] of sent) {
    expect(cql).toBe('SELECT writer_id FROM links WHERE short_code = ?')
    expect(values).toEqual([expect.stringMatching(/^-[\da-f]{16}$/)])
    expect(given).toEqual({ ...options, host: given.host })
  }
  expect(new Set(sent.map(([, values]) => String(values))).size).toBe(6)
})

test.each([
  { result: 'a row', respondOnce: () => Promise.resolve({ rows: [] }), isNoted: true },
  ...[0x2000, 0x2100, 0x2200, 0x2300].map((code) => ({
    ...{ result: 'a rejection', respondOnce: () => Promise.reject(response(code)), isNoted: true },
  })),
  ...[response(0x1000), response(0x0000), new Error('closed'), new TypeError('no')].map(
    (error) => ({
      ...{ result: 'an error', respondOnce: () => Promise.reject(error), isNoted: false },
    }),
  ),
])('$result is noted as a success of a probe: $isNoted', async (given) => {
  const { respondOnce, isNoted } = given
  hosts = [a, b, c]
  respond = async (_, host) => {
    if (host === b) return new Promise(() => undefined)
    await turn()
    return respondOnce()
  }
  const nowMs = performance.now() + 30
  const successes = await probe()
  await turn()
  expect(successes).toEqual(isNoted ? [nowMs, nowMs] : [])
})

test('each local node that is up returns its rows; a failed one returns none', async () => {
  respond = (_, host) =>
    host === b
      ? Promise.reject(new Error('closed'))
      : Promise.resolve({ rows: [{ address: host?.address }] })
  expect(await runOnEach(client, 'SELECT', 'dc1')).toEqual([
    ...[[{ address: 'a' }], [], [{ address: 'c' }], [{ address: 'd' }]],
  ])
  const { options } = kindOptions.scan
  expect(sent).toEqual([a, b, c, d].map((host) => ['SELECT', [], { ...options, host }]))
})

const warmUp = () => createWarmUp(client, { debug: (...args: unknown[]) => logged.push(args) })
const prepared = (...statements: string[]) => statements.map((cql) => [cql, {}, { prepare: true }])

test('statements are prepared at the start, and those added after it immediately', async () => {
  let complete: ((value: unknown) => void) | undefined
  respond = (cql) =>
    cql === 'B' ? new Promise((resolve) => (complete = resolve)) : Promise.resolve()
  const statements = warmUp()
  statements.add(['A'])
  statements.add(['B', 'C'])
  expect(sent).toEqual([])
  const started = jest.fn()
  void statements.start().then(started)
  await turn()
  expect(sent).toEqual(prepared('A', 'B', 'C'))
  expect(started.mock.calls).toHaveLength(0)
  complete?.(undefined)
  await turn()
  expect(started.mock.calls).toHaveLength(1)
  statements.add(['D', 'E'])
  expect(sent).toEqual(prepared('A', 'B', 'C', 'D', 'E'))
  await statements.start()
  expect(sent).toHaveLength(5)
})

test('a statement that is not prepared is logged, unless only its values are absent', async () => {
  const closed = new Error('closed')
  const absent = new errors.ArgumentError('Parameter "a" not defined')
  respond = (cql) => Promise.reject(cql.startsWith('A') ? absent : closed)
  const statements = warmUp()
  statements.add(['A', 'B'])
  await statements.start()
  const message = 'statement not prepared before its first use'
  expect(logged).toEqual([[{ err: closed }, message]])
  statements.add(['A2', 'B2'])
  await turn()
  expect(logged).toEqual(Array(2).fill([{ err: closed }, message]))
})
