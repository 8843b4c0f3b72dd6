// Which credentials each connection uses while they rotate and Redis accepts or rejects them. The
// nodes are fakes of the driver; test/component/stores uses real servers.
import { beforeEach, expect, test } from '@jest/globals'
import { Cluster } from 'ioredis'
import { FakeRedisNode } from '../../../test/kit/ratelimit/fake-redis-node.ts'
import { AppliedSecrets } from './apply-secrets.ts'
import type { RedisAuth } from './connection-options.ts'

const OLD: RedisAuth = { username: 'app', password: 'old' }
const NEW: RedisAuth = { username: 'app', password: 'new' }

let node: FakeRedisNode

beforeEach(() => {
  node = new FakeRedisNode()
})

const open = (auth: RedisAuth | undefined = OLD) => {
  const target = { kind: 'single', host: 'h', port: 1 } as never
  const secrets = new AppliedSecrets(node.redis, {
    ...{ target, database: 0, timeoutMs: 50, auth },
  })
  node.connect()
  return secrets
}

test('the first credentials are those of the options', () => {
  const secrets = open()
  expect(node.options).toMatchObject({ username: 'app', password: 'old', sentinelPassword: '' })
  expect([secrets.hasPrevious(), secrets.isInUse(), secrets.isPreviousInUse()]).toEqual([
    ...[false, true, false],
  ])
  expect([secrets.isOutdated(node.redis), secrets.isCurrentDenied()]).toEqual([false, false])
})

test('changed credentials apply to the next connection, equal ones change nothing', () => {
  const secrets = open()
  expect(secrets.change({ auth: { ...OLD } })).toBe(false)
  expect(secrets.change({ auth: NEW })).toBe(true)
  expect([node.password, secrets.isOutdated(node.redis), secrets.isInUse()]).toEqual([
    ...['new', true, false],
  ])
  expect(secrets.hasPrevious()).toBe(true)
  node.connect()
  expect([secrets.isOutdated(node.redis), secrets.isInUse()]).toEqual([false, true])
  expect(node.sent).toEqual([])
})

test('a change of a certificate alone keeps the credentials in use', () => {
  const secrets = open()
  expect(secrets.change({ auth: { ...OLD }, tls: { ca: 'c', isHostChecked: true } })).toBe(true)
  expect([secrets.hasPrevious(), secrets.isInUse(), node.password]).toEqual([false, true, 'old'])
  expect(node.options['tls']).toMatchObject({ ca: 'c' })
})

test('open connections are authenticated with accepted credentials', async () => {
  const secrets = open()
  secrets.change({ auth: NEW })
  expect(await secrets.authenticate()).toEqual({ rejection: undefined, isAccepted: true })
  expect([node.sent, secrets.isInUse()]).toEqual([[['app', 'new']], true])
})

test('the default user is authenticated by the password alone', async () => {
  const secrets = open()
  secrets.change({ auth: { password: 'new' } })
  await secrets.authenticate()
  expect([node.sent, node.options['username']]).toEqual([[['new']], ''])
})

test('without credentials nothing is sent', async () => {
  const secrets = open()
  secrets.change({})
  expect(await secrets.authenticate()).toEqual({ rejection: undefined, isAccepted: true })
  expect([node.sent, secrets.clearDenialOfCurrent(), secrets.isCurrentDenied()]).toEqual([
    ...[[], false, false],
  ])
})

test('a connection on which Redis rejects the new credentials uses the previous ones', async () => {
  const secrets = open()
  node.accepted = ['old']
  secrets.change({ auth: NEW })
  const { rejection, isAccepted } = await secrets.authenticate()
  expect([rejection?.message, isAccepted]).toEqual([
    'WRONGPASS invalid username-password pair',
    true,
  ])
  expect(rejection).not.toHaveProperty('command')
  expect(node.sent).toEqual([
    ['app', 'new'],
    ['app', 'old'],
  ])
  expect([secrets.isPreviousInUse(), secrets.isInUse(), node.password]).toEqual([
    ...[true, false, 'old'],
  ])
  expect(secrets.isOutdated(node.redis)).toBe(false)
  node.accepted = ['new']
  expect(await secrets.authenticate()).toEqual({ rejection: undefined, isAccepted: true })
  expect([secrets.isPreviousInUse(), secrets.isInUse(), node.password]).toEqual([
    ...[false, true, 'new'],
  ])
})

test('without previous credentials, a rejection is final', async () => {
  const secrets = open()
  node.accepted = []
  const { rejection, isAccepted } = await secrets.authenticate()
  expect([rejection?.message, isAccepted]).toEqual([
    'WRONGPASS invalid username-password pair',
    false,
  ])
  expect([node.sent.length, secrets.isPreviousInUse()]).toEqual([1, false])
})

test('if Redis rejects both, no command may be retried', async () => {
  const secrets = open()
  node.accepted = []
  secrets.change({ auth: NEW })
  expect((await secrets.authenticate()).isAccepted).toBe(false)
})

test.each([
  ['a lost connection', () => Promise.reject<'OK'>(new Error('Connection is closed.'))],
  ['no reply', () => new Promise<'OK'>(() => undefined)],
])('%s is not a rejection', async (_name, reply) => {
  const secrets = open()
  secrets.change({ auth: NEW })
  node.reply = reply
  expect(await secrets.authenticate()).toEqual({ rejection: undefined, isAccepted: true })
  expect([secrets.isInUse(), node.password]).toEqual([false, 'new'])
})

test('a rejected handshake selects the other credentials for the next connection', () => {
  const secrets = open()
  secrets.change({ auth: NEW })
  node.connect()
  expect([secrets.noteRejectedHandshake(node.redis), node.password]).toEqual([true, 'old'])
  expect(secrets.noteRejectedHandshake(node.redis)).toBe(true) // of the same handshake: no change
  expect([node.password, secrets.isPreviousInUse()]).toEqual(['old', true])
  node.connect()
  expect([secrets.noteRejectedHandshake(node.redis), node.password]).toEqual([false, 'new'])
  expect(secrets.isPreviousInUse()).toBe(false)
})

test('without previous credentials, a rejected handshake selects nothing', () => {
  const secrets = open()
  expect([secrets.noteRejectedHandshake(node.redis), node.password]).toEqual([true, 'old'])
})

test('after a denied command, only the previous credentials are used', async () => {
  const secrets = open()
  expect(secrets.noteDeniedCommand()).toBe(false) // there are no previous ones
  secrets.change({ auth: NEW })
  await secrets.authenticate()
  expect([secrets.noteDeniedCommand(), secrets.isCurrentDenied()]).toEqual([true, true])
  node.sent.splice(0)
  expect(await secrets.authenticate()).toEqual({ rejection: undefined, isAccepted: true })
  expect([node.sent, secrets.isPreviousInUse()]).toEqual([[['app', 'old']], true])
  expect([secrets.noteDeniedCommand(), secrets.isCurrentDenied()]).toEqual([false, true])
  node.sent.splice(0)
  await secrets.authenticate() // both are denied: the current ones are tried
  expect([node.sent, secrets.isPreviousInUse()]).toEqual([[['app', 'new']], false])
})

test('without credentials, or with those of the next change, no denial remains', async () => {
  const secrets = open()
  secrets.change({})
  node.connect()
  expect(secrets.noteDeniedCommand()).toBe(false)
  secrets.change({ auth: OLD })
  secrets.change({ auth: NEW })
  await secrets.authenticate()
  secrets.noteDeniedCommand()
  secrets.change({ auth: { ...NEW, password: 'newest' } })
  await secrets.authenticate()
  secrets.noteDeniedCommand()
  node.sent.splice(0)
  await secrets.authenticate()
  expect(node.sent).toEqual([['app', 'new']])
})

test('a denial of the current credentials ends with them, or when it is cleared', async () => {
  const secrets = open()
  secrets.change({ auth: NEW })
  await secrets.authenticate()
  secrets.noteDeniedCommand()
  expect([secrets.clearDenialOfCurrent(), secrets.clearDenialOfCurrent()]).toEqual([true, false])
  secrets.noteDeniedCommand()
  secrets.change({ auth: { ...NEW, password: 'newest' } })
  expect(secrets.isCurrentDenied()).toBe(false)
})

test('a connection that is not ready is neither authenticated nor in use', async () => {
  const secrets = open()
  secrets.change({ auth: NEW })
  node.status = 'connecting'
  expect(await secrets.authenticate()).toEqual({ rejection: undefined, isAccepted: true })
  expect([node.sent, secrets.isInUse()]).toEqual([[], false])
})

test('credentials that change during an authentication are selected by the next one', async () => {
  const secrets = open()
  secrets.change({ auth: NEW })
  const newest = { ...NEW, password: 'newest' }
  node.reply = (password) => {
    if (password === 'new') secrets.change({ auth: newest })
    return Promise.resolve('OK')
  }
  await secrets.authenticate()
  expect([secrets.isOutdated(node.redis), node.password]).toEqual([true, 'newest'])
  await secrets.authenticate()
  expect([secrets.isInUse(), node.sent.at(-1)]).toEqual([true, ['app', 'newest']])
})

test('credentials that change while the previous ones are tried are selected', async () => {
  const secrets = open()
  secrets.change({ auth: NEW })
  node.accepted = ['old']
  const authenticated = secrets.authenticate()
  secrets.change({ auth: { ...NEW, password: 'newest' } })
  await authenticated
  expect([secrets.isPreviousInUse(), node.password]).toEqual([false, 'newest'])
})

test('each node of a Cluster has its own credentials', async () => {
  const other = new FakeRedisNode()
  const cluster = new Cluster([], { lazyConnect: true })
  cluster.nodes = () => [node.redis, other.redis]
  const secrets = new AppliedSecrets(cluster, {
    ...{ target: { kind: 'cluster' } as never, database: 0, timeoutMs: 50, auth: OLD },
  })
  for (const each of [node, other]) {
    cluster.emit('+node', each)
    each.connect()
  }
  secrets.change({ auth: NEW })
  node.accepted = ['new']
  other.accepted = ['old']
  const { rejection, isAccepted } = await secrets.authenticate()
  expect([rejection?.message, isAccepted]).toEqual([
    'WRONGPASS invalid username-password pair',
    true,
  ])
  expect([node.password, other.password]).toEqual(['new', 'old'])
  expect([secrets.isInUse(), secrets.isPreviousInUse()]).toEqual([false, true])
  expect([secrets.noteDeniedCommand(), secrets.isCurrentDenied()]).toEqual([false, false])
  other.accepted = [] // a command that another node rejected may still be retried
  expect((await secrets.authenticate()).isAccepted).toBe(true)
})
