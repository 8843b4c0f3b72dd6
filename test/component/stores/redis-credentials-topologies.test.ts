// Credentials that rotate on a Redis Cluster and behind Sentinel, those of the link cache, and
// client certificates that rotate.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { parseConfig } from '../../../src/config/config.ts'
import { connectRedis } from '../../../src/stores/redis/connection.ts'
import { createRedisCounterStore } from '../../../src/stores/redis/counter-store.ts'
import { planRedis, redisSettings } from '../../../src/stores/redis/settings.ts'
import { describeError } from '../../../src/telemetry/log.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { clientOf, createCertificate, startCluster, startRedis } from '../../dependencies/redis.ts'
import { openReadyCache, TOLERANT_MS_MAX } from '../../kit/links/link-cache-use.ts'
import { mountSecret } from '../../kit/mounted-secret.ts'
import { newUpdate, reconnectMsMax } from '../../kit/ratelimit/redis-use.ts'
import { repeatWhile } from '../../kit/repeat-while.ts'
import { waitFor } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 400_000 // Redis may have to be installed
const USER = ['--user', 'app', 'on', '>first', '~*', '+@all']

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
})

/** A server that is closed after the test. */
async function openServer(...args: Parameters<typeof startRedis>) {
  const server = await startRedis(...args)
  cleanups.push(() => server.close())
  return server
}

/** A client that is disconnected after the test. */
function openClient(...args: Parameters<typeof clientOf>) {
  const client = clientOf(...args)
  cleanups.push(() => {
    client.disconnect()
  })
  return client
}

/** A Secret that is removed after the test. */
async function openSecret(files: Readonly<Record<string, string>>) {
  const secret = await mountSecret(files)
  cleanups.push(() => secret.remove())
  return secret
}

/** A store of these settings, the messages of its reloads, and the errors of its connection. */
function openStore(env: Record<string, string>) {
  const { main, keyPrefix } = planRedis(parseConfig(redisSettings, { REDIS_TIMEOUT: '5s', ...env }))
  const reloads: string[] = []
  const errors: Error[] = []
  const connection = connectRedis(
    { ...main, reconnectMsMax },
    {
      onUp: () => undefined,
      onDown: (error) => errors.push(error),
      onReload: (problem) => reloads.push(problem?.message ?? ''),
    },
  )
  const store = createRedisCounterStore({ connection, keyPrefix })
  cleanups.push(() => {
    store.close()
  })
  /** Counts hits on 20 counters in several slots; Redis may count hits in flight twice. */
  const count = async () => {
    const updates = Array.from({ length: 20 }, () => newUpdate('fixed_window'))
    const decisions = await store.consume(updates)
    expect(decisions.map(({ admitted }) => admitted)).toEqual(updates.map(() => true))
  }
  return { connection, reloads, errors, count }
}

test(
  'on a Cluster, every connection uses the changed credentials',
  async () => {
    const nodes = await startCluster(USER)
    for (const node of nodes) cleanups.push(() => node.close())
    const admins = nodes.map(({ port }) => openClient(port))
    const secret = await openSecret({ auth: 'app:first' })
    const { connection, reloads, count } = openStore({
      REDIS_TYPE: 'cluster',
      REDIS_URL: nodes.map(({ port }) => `127.0.0.1:${port}`).join(','),
      REDIS_AUTH_FILE: secret.pathOf('auth'),
    })
    await waitFor('the Cluster', () => connection.isUp())
    await count()
    const users = async () => {
      const lists = await Promise.all(admins.map((admin) => admin.client('LIST')))
      return lists.flatMap((list) => [...String(list).matchAll(/ name=curtail .* user=(\w+)/g)])
    }
    await repeatWhile(count, async () => {
      for (const admin of admins) {
        await admin.acl('SETUSER', 'other', 'on', '>second', '~*', '+@all')
      }
      await secret.swap({ auth: 'other:second' })
      await waitFor('the reload', () => reloads.length === 1)
      for (const admin of admins) await admin.acl('DELUSER', 'app')
    })
    expect(new Set((await users()).map(([, user]) => user))).toEqual(new Set(['other']))
    await repeatWhile(count, async () => {
      for (const admin of admins) {
        await admin.acl('SETUSER', 'other', 'resetpass', '>third')
        await secret.swap({ auth: 'other:third' })
        await admin.client('KILL', 'USER', 'other') // the other nodes still use the old password
      }
    })
  },
  TEST_MS_MAX,
)

test(
  'errors of a Cluster that rejects the credentials do not contain them',
  async () => {
    const nodes = await startCluster(USER)
    for (const node of nodes) cleanups.push(() => node.close())
    const { errors } = openStore({
      REDIS_TYPE: 'cluster',
      REDIS_URL: nodes.map(({ port }) => `127.0.0.1:${port}`).join(','),
      REDIS_AUTH: 'app:hunter2',
    })
    await waitFor('the error', () => errors.length > 0)
    const described = JSON.stringify(errors.map(describeError))
    expect(described).toContain('WRONGPASS')
    expect(described).not.toContain('hunter2')
  },
  TEST_MS_MAX,
)

test(
  'behind Sentinel, the credentials of the sentinel and of the master rotate',
  async () => {
    const master = await openServer(USER)
    const port = await freePort()
    const dir = await mkdtemp(join(tmpdir(), 'curtail-sentinel-'))
    cleanups.push(() => rm(dir, { recursive: true }))
    const file = join(dir, 'sentinel.conf')
    await writeFile(
      file,
      [
        `port ${port}`,
        'bind 127.0.0.1',
        `dir ${dir}`,
        `sentinel monitor master 127.0.0.1 ${master.port} 1`,
        'user default on >watch-1 ~* &* +@all',
        'user admin on nopass ~* &* +@all',
      ].join('\n'),
    )
    const started = { port, isReady: /\+monitor master/ }
    const sentinel = await openServer([file, '--sentinel'], started)
    const secret = await openSecret({ auth: 'app:first', sentinel: 'watch-1' })
    const { connection, count, reloads } = openStore({
      REDIS_TYPE: 'SENTINEL',
      REDIS_URL: `master,127.0.0.1:${sentinel.port}`,
      REDIS_AUTH_FILE: secret.pathOf('auth'),
      REDIS_SENTINEL_AUTH_FILE: secret.pathOf('sentinel'),
    })
    await waitFor('the master', () => connection.isUp())
    const admin = openClient(master.port)
    const ofSentinel = openClient(sentinel.port, { username: 'admin', password: 'any' })
    const isDetecting = async () =>
      / sub=[1-9].* user=default/.test(String(await ofSentinel.client('LIST')))
    await waitFor('the failover detector', isDetecting)
    await repeatWhile(count, async () => {
      await admin.acl('SETUSER', 'app', '>second')
      await ofSentinel.acl('SETUSER', 'default', 'resetpass', '>watch-2')
      await secret.swap({ auth: 'app:second', sentinel: 'watch-2' })
      await waitFor('the reload', () => reloads.length === 1)
      await admin.acl('SETUSER', 'app', '<first')
      await ofSentinel.client('KILL', 'USER', 'default')
      await waitFor('the failover detector', isDetecting)
      await admin.client('KILL', 'USER', 'app')
    })
    await count()
  },
  TEST_MS_MAX,
)

test(
  'the link cache uses a changed password in REDIS_URL_FILE',
  async () => {
    const server = await openServer(USER)
    const admin = openClient(server.port)
    const urlOf = (password: string) => `redis://app:${password}@127.0.0.1:${server.port}`
    const secret = await openSecret({ url: urlOf('first') })
    const { cache } = await openReadyCache(
      { REDIS_URL_FILE: secret.pathOf('url') },
      { commandMsMax: TOLERANT_MS_MAX },
    )
    cleanups.push(() => cache.close())
    const read = async () => {
      expect((await cache.lookUp('abc')).kind).toBe('unknown')
    }
    await repeatWhile(read, async () => {
      await admin.acl('SETUSER', 'app', 'resetpass', '>second')
      await secret.swap({ url: urlOf('second') })
      await admin.client('KILL', 'USER', 'app')
      await waitFor('the next connection', async () =>
        String(await admin.client('LIST')).includes('user=app'),
      )
    })
    await read()
  },
  TEST_MS_MAX,
)

test(
  'the next TLS connection uses a changed client certificate',
  async () => {
    const [own, next] = [await createCertificate(), await createCertificate()]
    cleanups.push(own.close, next.close)
    const pemOf = async ({ cert, key }: { cert: string; key: string }) => ({
      cert: await readFile(cert, 'utf8'),
      key: await readFile(key, 'utf8'),
    })
    const [first, second] = [await pemOf(own), await pemOf(next)]
    const secret = await openSecret(first)
    const authorities = await openSecret({ both: `${first.cert}${second.cert}` })
    const tls = ['--tls-cert-file', own.cert, '--tls-key-file', own.key]
    const trust = ['--tls-ca-cert-file', authorities.pathOf('both')]
    const server = await openServer([...tls, ...trust], { isTls: true })
    const { connection, reloads, errors, count } = openStore({
      REDIS_URL: `rediss://127.0.0.1:${server.port}`,
      REDIS_TLS_CACERT: own.cert,
      REDIS_TLS_CLIENT_CERT: secret.pathOf('cert'),
      REDIS_TLS_CLIENT_KEY: secret.pathOf('key'),
    })
    await waitFor('Redis', () => connection.isUp())
    await secret.swap({ ...first, key: second.key })
    await waitFor('the problem', () => reloads.length === 1)
    expect(reloads[0]).toBe('REDIS_TLS_CLIENT_KEY must be the key of REDIS_TLS_CLIENT_CERT')
    await secret.swap(second)
    await waitFor('the reload', () => reloads.length === 2)
    const admin = openClient(server.port, { tls: { ca: first.cert, ...second } })
    await admin.config('SET', 'tls-ca-cert-file', next.cert)
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await waitFor('the loss', () => errors.length > 0)
    await waitFor('the next connection', () => connection.isUp())
    await count()
    expect(reloads[1]).toBe('')
  },
  TEST_MS_MAX,
)
