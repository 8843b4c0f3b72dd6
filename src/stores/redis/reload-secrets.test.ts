// When the secrets of a client are read from their files and sent to Redis, and what is reported.
// The connection and the files are fakes; test/component/stores uses real ones.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { FakeRedisNode } from '../../../test/kit/ratelimit/fake-redis-node.ts'
import type { RedisSecrets } from './connection-options.ts'
import { isCredentialError, logReloads, SecretReloads } from './reload-secrets.ts'

const POLL_MS = 2000
const DENIED = new Error("NOPERM this user has no permissions to run the 'get' command")
const NO_AUTH = new Error('NOAUTH Authentication required.')
const WRONG = 'WRONGPASS invalid username-password pair'

let node: FakeRedisNode
/** The problems, and `accepted` for accepted secrets. */
let reports: string[]
let files: RedisSecrets | Error
let reads: number
let reloads: SecretReloads

const secretsOf = (password: string): RedisSecrets => ({ auth: { username: 'app', password } })

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] })
  node = new FakeRedisNode()
  reports = []
  files = secretsOf('old')
  reads = 0
  reloads = new SecretReloads({
    client: node.redis,
    options: {
      target: { kind: 'server', host: 'h', port: 1 } as never,
      ...{ database: 0, timeoutMs: 50, ...secretsOf('old') },
    },
    files: {
      paths: [],
      hasCredentials: true,
      read() {
        reads++
        if (files instanceof Error) throw files
        return files
      },
    },
    onReload: (problem) => reports.push(problem?.message ?? 'accepted'),
  })
  node.connect()
})
afterEach(() => {
  reloads.stop()
  jest.useRealTimers()
})

const advance = async (ms: number) => {
  await jest.advanceTimersByTimeAsync(ms)
  await new Promise((resolve) => setImmediate(resolve))
}
/** Waits until the files are stable and read for the first time, in real time, at most 10 s. */
const untilRead = async () => {
  for (let waits = 0; reads === 0 && waits < 1000; waits++) await sleep(10)
  expect(reads).toBe(1)
}
const sentPasswords = () => node.sent.splice(0).map((args) => args.at(-1))

test.each([
  ['NOAUTH Authentication required.', true],
  [WRONG, true],
  ['NOPERM no permissions', true],
  ['ERR unknown', false],
  ['XNOAUTH', false],
])('the error %j is about credentials: %j', (message, expected) => {
  expect(isCredentialError(new Error(message))).toBe(expected)
  expect(isCredentialError(message)).toBe(false)
})

test('a reload and its failure are logged', () => {
  const lines: unknown[] = []
  const log = {
    info: (...args: unknown[]) => lines.push(args),
    warn: (...args: unknown[]) => lines.push(args),
  }
  const onReload = logReloads(log as never, 'counters')
  const err = new Error('broken')
  onReload()
  onReload(err)
  expect(lines).toEqual([
    [{ redis: 'counters' }, 'Redis credentials reloaded'],
    [{ err, redis: 'counters' }, 'cannot reload Redis credentials: using the previous ones'],
  ])
})

test('unchanged files cause no authentication and no report', async () => {
  await untilRead()
  await advance(POLL_MS)
  await advance(POLL_MS)
  expect([sentPasswords(), reports, reads]).toEqual([[], [], 1])
})

test('after a rejected command, changed files are read and applied', async () => {
  files = secretsOf('new')
  for (let nth = 0; nth < 2; nth++) {
    expect(await reloads.renew(NO_AUTH)).toBe(true)
    expect([sentPasswords(), reports]).toEqual([['new'], ['accepted']])
    await advance(20)
  }
})

test('commands that are rejected together share one authentication', async () => {
  const renewals = [reloads.renew(NO_AUTH), reloads.renew(NO_AUTH)]
  expect(await Promise.all(renewals)).toEqual([true, true])
  expect([await reloads.renew(NO_AUTH), sentPasswords()]).toEqual([true, ['old']])
  await advance(19)
  expect([await reloads.renew(NO_AUTH), sentPasswords()]).toEqual([true, []])
  await advance(1)
  expect([await reloads.renew(NO_AUTH), sentPasswords(), reports]).toEqual([true, ['old'], []])
})

test('rejected credentials are reported once, and then those that Redis accepts', async () => {
  files = secretsOf('wrong')
  node.accepted = ['old', 'new']
  expect(await reloads.renew(NO_AUTH)).toBe(true) // with the previous ones
  expect([sentPasswords(), reports]).toEqual([['wrong', 'old'], [WRONG]])
  await advance(20)
  await reloads.renew(NO_AUTH)
  expect(reports).toEqual([WRONG])
  await advance(20)
  files = secretsOf('new')
  await reloads.renew(NO_AUTH)
  expect(reports).toEqual([WRONG, 'accepted'])
})

test('if Redis rejects all credentials, a command is not retried', async () => {
  node.accepted = []
  expect([await reloads.renew(NO_AUTH), reports]).toEqual([false, []])
})

test('files that cannot be read are reported once, and change nothing', async () => {
  files = new Error('REDIS_AUTH_FILE is empty')
  for (let at = 0; at < 2; at++) {
    expect([await reloads.renew(NO_AUTH), sentPasswords()]).toEqual([true, ['old']])
    await advance(20)
  }
  expect(reports).toEqual(['REDIS_AUTH_FILE is empty'])
  files = secretsOf('old')
  await reloads.renew(NO_AUTH)
  await advance(20)
  files = new Error('REDIS_AUTH_FILE is empty')
  await reloads.renew(NO_AUTH)
  expect(reports).toEqual(['REDIS_AUTH_FILE is empty', 'REDIS_AUTH_FILE is empty'])
})

test('after a denied command, only polls try the current credentials', async () => {
  await untilRead()
  files = secretsOf('new')
  await reloads.renew(NO_AUTH)
  await advance(20)
  reports = []
  sentPasswords()
  expect(await reloads.renew(DENIED)).toBe(true)
  expect([sentPasswords(), reports]).toEqual([['old'], [DENIED.message]])
  await advance(POLL_MS)
  expect([sentPasswords(), reports]).toEqual([['new'], [DENIED.message]])
  await advance(POLL_MS) // no command was denied in the meantime
  expect([sentPasswords(), reports]).toEqual([[], [DENIED.message, 'accepted']])
})

test('if both credentials are denied, the current ones are used, and not reported', async () => {
  files = secretsOf('new')
  await reloads.renew(NO_AUTH)
  for (const password of ['old', 'new']) {
    await advance(20)
    sentPasswords()
    await reloads.renew(DENIED)
    expect([sentPasswords(), reports]).toEqual([[password], ['accepted', DENIED.message]])
  }
})

test('a poll right after a renewal authenticates nothing', async () => {
  await untilRead()
  files = secretsOf('new')
  await reloads.renew(NO_AUTH)
  await advance(POLL_MS - performance.now() - 10)
  await reloads.renew(DENIED)
  expect(sentPasswords()).toEqual(['new', 'old'])
  await advance(19) // at the poll, which is the next one
  expect(sentPasswords()).toEqual([])
  await advance(POLL_MS)
  expect(sentPasswords()).toEqual(['new'])
})

test('changes during an authentication share the one that follows it', async () => {
  for (const password of ['first', 'second', 'third']) {
    files = secretsOf(password)
    node.emit('close')
  }
  await advance(0)
  expect([sentPasswords(), reports]).toEqual([['first', 'third'], ['accepted']])
})

test('a denied command without previous credentials is not reported', async () => {
  expect([await reloads.renew(DENIED), sentPasswords(), reports]).toEqual([true, ['old'], []])
})

test('a closed connection reads the files', async () => {
  node.status = 'connecting'
  node.emit('close')
  expect([reads, node.sent.length]).toEqual([1, 0])
  files = secretsOf('new')
  node.emit('close')
  await advance(0)
  expect([node.password, node.sent, reports]).toEqual(['new', [], []])
  node.connect()
  await advance(0)
  expect([node.sent, reports]).toEqual([[], ['accepted']])
})

test('a connection with outdated credentials is authenticated once it is ready', async () => {
  node.emit('connecting') // with the old credentials
  node.status = 'connecting'
  files = secretsOf('new')
  node.emit('close')
  node.status = 'ready'
  node.emit('ready')
  await advance(0)
  expect([sentPasswords(), reports]).toEqual([['new'], ['accepted']])
})

test('a rejected handshake with new credentials selects the previous ones', async () => {
  files = secretsOf('new')
  node.emit('close')
  await advance(0)
  node.emit('connecting')
  node.emit('error', new Error(WRONG))
  expect([node.password, reports.at(-1)]).toEqual(['old', WRONG])
})

test('if the files cannot be read, a rejected handshake selects the previous ones', async () => {
  files = secretsOf('new')
  node.emit('close')
  await advance(0)
  files = new Error('REDIS_AUTH_FILE is empty')
  node.emit('connecting')
  node.emit('error', new Error(WRONG))
  expect(node.password).toBe('old')
})

test.each(['ECONNREFUSED', 'All sentinels are unreachable. Last error: WRONGPASS no'])(
  'the error %j selects no other credentials',
  async (message) => {
    files = secretsOf('new')
    node.emit('close')
    await advance(0)
    node.emit('connecting')
    reports = []
    node.emit('error', new Error(message))
    expect([node.password, reports]).toEqual(['new', []])
  },
)

test('a rejected handshake reads the files first', async () => {
  files = secretsOf('new')
  node.emit('error', new Error(WRONG))
  await advance(0)
  expect([node.password, sentPasswords(), reports]).toEqual(['new', ['new'], ['accepted']])
})

test('a stop during an authentication reports nothing', async () => {
  files = secretsOf('new')
  const renewed = reloads.renew(NO_AUTH)
  reloads.stop()
  expect([await renewed, sentPasswords(), reports]).toEqual([true, ['new'], []])
})

test('after a stop, nothing is read, sent or reported', async () => {
  node.status = 'connecting'
  files = secretsOf('newer')
  node.emit('close')
  await advance(0)
  node.status = 'ready' // with outdated credentials
  reloads.stop()
  files = secretsOf('new')
  const before = reads
  expect(await reloads.renew(NO_AUTH)).toBe(false)
  for (const event of ['close', 'ready', 'connecting']) node.emit(event)
  node.emit('error', new Error(WRONG))
  await advance(3 * POLL_MS)
  expect([reads - before, node.sent, reports]).toEqual([0, [], []])
})
