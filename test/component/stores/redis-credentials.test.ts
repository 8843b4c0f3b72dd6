// Credentials and certificates of Redis that rotate while calls are counted: no call fails, and the
// new ones are used by the open connection and by the next.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import type { Redis } from 'ioredis'
import { parseConfig } from '../../../src/config/config.ts'
import { connectRedis } from '../../../src/stores/redis/connection.ts'
import {
  createRedisCounterStore,
  type RedisCounterStore,
} from '../../../src/stores/redis/counter-store.ts'
import { planRedis, redisSettings } from '../../../src/stores/redis/settings.ts'
import { findAptDependency } from '../../dependencies/apt.ts'
import { redisServers } from '../../dependencies/redis-servers.ts'
import { clientOf, type RedisServer, startRedis } from '../../dependencies/redis.ts'
import { type MountedSecret, mountSecret } from '../../kit/mounted-secret.ts'
import { consumeOne, newUpdate, reconnectMsMax } from '../../kit/ratelimit/redis-use.ts'
import { repeatWhile } from '../../kit/repeat-while.ts'
import { waitFor } from '../../kit/wait-for.ts'

/** Changed files are read within this time. */
const SETTLE_MS = 500
/** The files are read at least as often; a poll tries denied credentials. */
const POLL_MS = 2000
const WATCHED_MS = 200
const PAUSE_MS = 40
const SETUP_MS_MAX = 400_000 // Redis may have to be installed
const USER = ['--user', 'app', 'on', '>first', '~*', '+@all']

/** A store with files of its own. */
interface OpenedStore {
  readonly secret: MountedSecret
  readonly store: RedisCounterStore
  /** The messages of reloads; empty if the secrets were used. */
  readonly reloads: string[]
}

let server: RedisServer
let admin: Redis
let secret: MountedSecret
let store: RedisCounterStore
let reloads: string[]

async function open(program: string): Promise<void> {
  server = await startRedis(USER, { program })
  admin = clientOf(server.port)
  ;({ secret, store, reloads } = await openStore())
}

async function openStore(): Promise<OpenedStore> {
  const mounted = await mountSecret({ auth: 'app:first\n' })
  const env = {
    REDIS_URL: `127.0.0.1:${server.port}`,
    REDIS_AUTH_FILE: mounted.pathOf('auth'),
    REDIS_TIMEOUT: '5s',
  }
  const { main } = planRedis(parseConfig(redisSettings, env))
  const messages: string[] = []
  const connection = connectRedis(
    { ...main, reconnectMsMax },
    {
      onUp: () => undefined,
      onDown: () => undefined,
      onReload: (problem) => messages.push(problem?.message ?? ''),
    },
  )
  const created = createRedisCounterStore({ connection, keyPrefix: 'c:' })
  await waitFor('Redis', () => connection.isUp())
  return { secret: mounted, store: created, reloads: messages }
}

async function close(): Promise<void> {
  store.close()
  admin.disconnect()
  await server.close()
  await secret.remove()
}

/** The connection of the store: its number and its user. */
async function connected(): Promise<string> {
  const lines = String(await admin.client('LIST')).split('\n')
  const own = lines.filter((line) => line.includes(' name=curtail '))
  return own.map((line) => line.replace(/^id=(\d+) .* user=(\w+) .*$/, '$1 $2')).join()
}

/** Writes the file and waits until the store has reloaded it, if nothing else is reported. */
async function rotateTo(auth: string, of = { secret, reloads }): Promise<void> {
  const before = of.reloads.length
  await of.secret.swap({ auth })
  await waitFor('the reload', () => of.reloads.length > before)
}

/** Counts a hit; if Redis closes the connection, it may count the hit twice. */
async function countOnce(by = store): Promise<void> {
  expect(await consumeOne(by, newUpdate())).toMatchObject({ admitted: true })
}

/** Counts without a pause until `change` has completed. Returns the number of calls. */
const countWhile = (change: () => Promise<unknown>, by = store) =>
  repeatWhile(() => countOnce(by), change)

describe.each(redisServers)('changed credentials of $name', ({ find }) => {
  beforeEach(async () => {
    await open(await find())
  }, SETUP_MS_MAX)
  afterEach(close)

  test('authenticate the open connection, also as another user', async () => {
    const first = await connected()
    expect(first).toMatch(/^\d+ app$/)
    const calls = await countWhile(async () => {
      await admin.acl('SETUSER', 'app', '>second')
      await rotateTo('app:second')
      await admin.acl('SETUSER', 'app', '<first')
      await admin.acl('SETUSER', 'other', 'on', '>third:3', '~*', '+@all')
      await rotateTo('other:third:3')
      await admin.acl('DELUSER', 'app') // closes the connections of this user
    })
    expect(calls).toBeGreaterThan(0)
    expect(await connected()).toBe(first.replace('app', 'other'))
    expect(reloads).toEqual(['', ''])
  })

  test('are used for the next connection after Redis has closed the first', async () => {
    const ids = new Set([await connected()])
    await countWhile(async () => {
      for (const password of ['second', 'third', 'fourth']) {
        await admin.acl('SETUSER', 'app', 'resetpass', `>${password}`)
        await secret.swap({ auth: `app:${password}` })
        await admin.client('KILL', 'USER', 'app')
        await waitFor('the next connection', async () => {
          const id = await connected()
          return id !== '' && !ids.has(id)
        })
        ids.add(await connected())
      }
    })
    expect(ids.size).toBe(4)
  })

  test('are read when Redis rejects a command, before the change was noticed', async () => {
    const first = await connected()
    await admin.acl('SETUSER', 'other', 'on', '>second', '~*', '+@all')
    await secret.swap({ auth: 'other:second' })
    await admin.acl('SETUSER', 'app', '-@all') // NOPERM
    await countOnce()
    expect(await connected()).toBe(first.replace('app', 'other'))
    expect(reloads).toEqual([''])
  })
})

describe('unusable credentials', () => {
  beforeEach(async () => {
    await open(await findAptDependency('redis-server'))
  }, SETUP_MS_MAX)
  afterEach(close)

  const tooLong = 'x'.repeat(65_537)
  test.each([
    ['empty', '\n', 'a file that is not empty'],
    ['too large', tooLong, 'a file of at most 65536 bytes'],
  ])('in a file that is %s: the previous ones stay in use', async (_, auth, allowed) => {
    await rotateTo(auth)
    const path = secret.pathOf('auth')
    const problem = `REDIS_AUTH_FILE must name ${allowed}: current value is ${path}`
    expect(reloads).toEqual([problem])
    await secret.swap({ auth: 'app:first' })
    const first = await connected()
    await countWhile(async () => {
      await admin.client('KILL', 'USER', 'app') // the file is read when the connection closes
      await waitFor('the next connection', async () => !['', first].includes(await connected()))
    })
    await rotateTo(auth)
    expect(reloads).toEqual([problem, problem])
    await admin.acl('SETUSER', 'app', '>second')
    await rotateTo('app:second')
    expect(reloads.slice(2)).toEqual([''])
  })

  test('in a deleted file: the previous ones stay in use', async () => {
    await secret.swap({})
    await waitFor('the problem', () => reloads.length > 0)
    expect(reloads[0]).toContain('REDIS_AUTH_FILE must name a readable file')
    await countWhile(() => admin.client('KILL', 'USER', 'app'))
  })

  test('without a connection: they are not reported as used until Redis accepts them', async () => {
    await server.kill()
    await secret.swap({ auth: 'app:second' })
    await sleep(SETTLE_MS)
    await server.restart()
    await waitFor('the problem', () => reloads.length > 0)
    await admin.acl('SETUSER', 'app', '>second')
    await waitFor('the reload', () => reloads.length > 1)
    expect(reloads).toEqual([expect.stringContaining('WRONGPASS'), ''])
  })

  test('of a user without permission: the previous ones are used until it has them', async () => {
    await admin.acl('SETUSER', 'other', 'on', '>second', '~*', '-@all', '+auth', '+client', '+info')
    await rotateTo('other:second')
    await countOnce()
    expect(await connected()).toMatch(/ app$/)
    expect(reloads).toEqual(['', expect.stringContaining('NOPERM')])
    await countWhile(async () => {
      await admin.acl('SETUSER', 'other', '+@all')
      await waitFor('the reload', () => reloads.length > 2)
    })
    expect(await connected()).toMatch(/ other$/)
    expect(reloads.slice(2)).toEqual([''])
  })

  test('that deny a command just before a poll tries them are not used for the next', async () => {
    const waits = Array.from({ length: 13 }, (_, i) => POLL_MS - 5 * i)
    const countAfter = async (waitMs: number, at: number) => {
      await sleep(at * 1.5 * WATCHED_MS) // one store counts at a time, so that calls are fast
      const user = `user${waitMs}`
      await admin.acl('SETUSER', user, 'on', '>second', '~*', '-@all', '+auth', '+client', '+info')
      const own = await openStore()
      try {
        await rotateTo(`${user}:second`, own)
        await sleep(waitMs)
        await countWhile(() => sleep(WATCHED_MS), own.store)
      } finally {
        own.store.close()
        await own.secret.remove()
      }
    }
    const results = await Promise.allSettled(waits.map(countAfter)) // none uses a closed server
    expect(results.filter(({ status }) => status === 'rejected')).toEqual([])
  })

  test('that deny a command right after AUTH are not used for its retry', async () => {
    await admin.acl('SETUSER', 'limited', 'on', '>second', '~*', '-@all', '+auth', '+client')
    await rotateTo('limited:second')
    await countOnce() // denied, then counted with the previous credentials
    const failures: unknown[] = []
    const counts: Promise<void>[] = []
    const untilMs = performance.now() + POLL_MS + WATCHED_MS
    for (let calls = 0; performance.now() < untilMs; calls++) {
      // A paused Redis sends its replies together.
      if (calls % 15 === 0) await admin.client('PAUSE', PAUSE_MS, 'ALL')
      counts.push(countOnce().catch((error: unknown) => void failures.push(error)))
      await sleep(4)
    }
    await Promise.all(counts)
    expect(failures).toEqual([])
  })

  test('are not read after the store is closed', async () => {
    await secret.swap({ auth: 'app:second' })
    store.close()
    await sleep(SETTLE_MS)
    expect(reloads).toEqual([])
  })

  test('with a password that Redis does not accept: the previous ones stay in use', async () => {
    await rotateTo('app:hunter2')
    expect(reloads).toEqual([expect.stringContaining('WRONGPASS')])
    expect(reloads[0]).not.toContain('hunter2')
    const first = await connected()
    await countWhile(async () => {
      await admin.client('KILL', 'USER', 'app')
      await waitFor('the next connection', async () => (await connected()).endsWith('app'))
    })
    expect(await connected()).not.toBe(first)
    await admin.acl('SETUSER', 'app', 'resetpass', '>hunter2') // accepted from here on
    await countWhile(() => admin.client('KILL', 'USER', 'app'))
    await waitFor('the reload', () => reloads.length === 2)
    expect(reloads[1]).toBe('')
  })
})
