// The xDS client in the process of the test: its deadline of connecting, what failed attempts leave
// behind, and errors of the code that applies a version.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import * as grpc from '@grpc/grpc-js'
import { expect, jest, test } from '@jest/globals'
import { type AdsClientDeps, openAdsClient } from '../../../src/clients/xds/ads-client.ts'
import { xdsSettings } from '../../../src/clients/xds/settings.ts'
import { parseConfig } from '../../../src/config/config.ts'
import { releaseStartMemory } from '../../../src/process/release-start-memory.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { createAuthority } from '../../kit/ratelimit/grpc-certificates.ts'
import { setUpXds, shopConfig, xdsEnvironment } from '../../kit/ratelimit/xds-limiter.ts'
import { CONFIG_TYPE_URL } from '../../kit/ratelimit/xds-messages.ts'
import { listenOn } from '../../kit/ratelimit/xds-network.ts'
import { createXdsTls } from '../../kit/ratelimit/xds-tls.ts'
import { waitFor } from '../../kit/wait-for.ts'

const CONNECT_MS_MAX = 200
const ATTEMPTS = 10
/** The longest time until grpc-js reconnects for the first time: 1 s, and 20 % of jitter. */
const RECONNECT_MS_MAX = 1300

interface Line {
  readonly level: string
  readonly fields: object
  readonly message: string
}

const xds = setUpXds()
const accept = () => Promise.resolve(undefined)

function open(
  port: number,
  apply: AdsClientDeps['apply'],
  options: Pick<AdsClientDeps, 'connectMsMax'> & { readonly env?: object } = {},
) {
  const { env, ...times } = options
  const log: Line[] = []
  const logAs = (level: string) => (fields: object, message: string) => {
    log.push({ level, fields, message })
  }
  const metrics = createMetrics()
  const client = openAdsClient({
    config: parseConfig(xdsSettings, { ...xdsEnvironment(port), ...env }),
    typeUrl: CONFIG_TYPE_URL,
    apply,
    onFailure: () => undefined,
    metrics,
    log: {
      info: logAs('info'),
      warn: logAs('warn'),
      error: logAs('error'),
    } as AdsClientDeps['log'],
    ...times,
  })
  const stop = () => client.stop()
  xds.cleanups.push(stop)
  return { log, metrics, stop }
}

/** A server that accepts connections and sends nothing. */
async function serveSilently(listenPort: number) {
  let connections = 0
  const silent = createServer((socket) => {
    connections += 1
    socket.on('close', () => (connections -= 1)).resume()
  })
  const { port, close } = await listenOn(listenPort, silent)
  xds.cleanups.push(close)
  return { port, close, connections: () => connections }
}

const isTimeout = ({ message }: Line) =>
  message.includes(`no connection within ${CONNECT_MS_MAX} ms`)

/** Returns a function that sets the monotonic clock forward. */
function controlClock(): (ms: number) => void {
  const now = performance.now.bind(performance)
  let aheadMs = 0
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs)
  xds.cleanups.push(() => {
    clock.mockRestore()
  })
  return (ms) => (aheadMs = ms)
}

test.each([
  { minutes: 4, level: 'info' },
  { minutes: 5, level: 'warn' },
])('a server that sends nothing is retried: $level after $minutes minutes', async (expected) => {
  const { port, connections } = await serveSilently(0)
  const setAhead = controlClock()
  const { log, metrics, stop } = open(port, accept, { connectMsMax: CONNECT_MS_MAX })
  setAhead(expected.minutes * 60_000)
  await waitFor('two failures', () => log.length >= 2)
  await stop()
  await waitFor('the connections to close', () => connections() === 0)
  for (const line of log) {
    const { level, fields } = line
    expect([level, fields]).toEqual([
      expected.level,
      expect.objectContaining({ reason: 'connect' }),
    ])
    expect(isTimeout(line)).toBe(true)
  }
  const { values } = await metrics.xdsFailures.get()
  const count = values.find(({ labels }) => labels.reason === 'connect')?.value
  expect(count).toBeGreaterThanOrEqual(2)
})

test('a server that closes the connection during TLS is a warning immediately', async () => {
  const { port, close } = await listenOn(
    0,
    createServer((socket) => socket.destroy()),
  )
  xds.cleanups.push(close)
  const { log, stop } = open(port, accept, { env: { CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true' } })
  await waitFor('a failure', () => log.length > 0)
  await stop()
  expect(log[0]).toMatchObject({ level: 'warn', fields: { reason: 'connect' } })
})

test.each([
  { client: 'with a certificate of another CA', usesTls: true },
  { client: 'in plaintext', usesTls: false },
])('a server with mutual TLS rejects a client $client: a warning immediately', async (client) => {
  const tls = createXdsTls()
  xds.cleanups.push(tls.remove)
  await xds.restartServer({ credentials: tls.serverCredentials() })
  tls.writeClient(createAuthority('other clients').issue(['limiter']))
  const { log } = open(xds.server.port, accept, { env: client.usesTls ? tls.env : {} })
  await waitFor('a failure', () => log.length > 0)
  expect(log[0]).toMatchObject({ level: 'warn', fields: { reason: 'connect' } })
})

test('while the server sends nothing, the last version stays applied', async () => {
  const { port } = xds.server
  const applied: string[] = []
  const apply: AdsClientDeps['apply'] = ({ version }) => {
    applied.push(version)
    return accept()
  }
  const env = { XDS_CLIENT_BACKOFF_MAX_INTERVAL: '100ms' }
  const { log, metrics } = open(port, apply, { env, connectMsMax: CONNECT_MS_MAX })
  await waitFor('the stream', () => xds.server.streams() === 1)
  await xds.server.requestFor(xds.server.publish({ version: 'v1', configs: [shopConfig()] }))
  xds.server.close()
  const silent = await serveSilently(port)
  await waitFor('a failure', () => log.some(isTimeout))
  expect((await metrics.xdsConnected.get()).values).toMatchObject([{ value: 0 }])
  expect(applied).toEqual(['v1'])
  silent.close()
  const server = await xds.restartServer()
  server.publish({ version: 'v2', configs: [shopConfig()] })
  await waitFor('v2', () => applied.length > 1)
  expect(applied).toEqual(['v1', 'v2'])
})

test('an alert of the server is one sentence that names the client certificate', async () => {
  const tls = createXdsTls()
  xds.cleanups.push(tls.remove)
  const unknownCa = Buffer.from('15030300020230', 'hex')
  const rejecting = createServer((socket) => socket.once('data', () => socket.write(unknownCa)))
  const { port, close } = await listenOn(0, rejecting)
  xds.cleanups.push(close)
  const { log } = open(port, accept, { env: tls.env })
  await waitFor('the failure', () => log.length > 0)
  expect(log[0]?.fields).toMatchObject({ reason: 'connect' })
  expect(log[0]?.message).toMatch(
    /^.* alert unknown ca.*; the server may reject the client cert.*$/,
  )
})

/** Returns a function that collects garbage, and counts the closed channels still in memory. */
function watchClosedChannels(): () => number {
  const closed: WeakRef<object>[] = []
  const { prototype } = grpc.Client
  const close = Reflect.get(prototype, 'close')
  prototype.close = function (this: grpc.Client) {
    const { internalChannel } = this.getChannel() as unknown as { readonly internalChannel: object }
    closed.push(new WeakRef(internalChannel))
    close.call(this)
  }
  xds.cleanups.push(() => (prototype.close = close))
  return () => {
    releaseStartMemory()
    return closed.filter((channel) => channel.deref() !== undefined).length
  }
}

test('failed attempts neither connect later nor stay in memory', async () => {
  const { port } = xds.server
  xds.server.close()
  const channelsInMemory = watchClosedChannels()
  const { log } = open(port, accept, { env: { XDS_CLIENT_BACKOFF_MAX_INTERVAL: '100ms' } })
  await waitFor('failures', () => log.length >= ATTEMPTS)
  let connections = 0
  const other = createServer(() => (connections += 1))
  await new Promise<void>((resolve) => {
    other.listen(port, '127.0.0.1', resolve)
  })
  xds.cleanups.push(() => other.close())
  await waitFor('the next attempt', () => connections > 0)
  await sleep(RECONNECT_MS_MAX)
  expect(connections).toBe(1)
  await waitFor('the collection of closed channels', () => channelsInMemory() <= 2)
})

test('an error while a version is applied is logged; the version is rejected', async () => {
  const { server } = xds
  const { log } = open(server.port, ({ version }) =>
    version === 'v1' ? Promise.reject(new TypeError('no such member')) : Promise.resolve(undefined),
  )
  await waitFor('the stream', () => server.streams() === 1)
  const { errorDetail } = await server.requestFor(
    server.publish({ version: 'v1', configs: [shopConfig()] }),
  )
  expect(errorDetail?.message).toBe('no such member')
  const errors = log.filter(({ level }) => level === 'error')
  expect(errors).toEqual([
    {
      level: 'error',
      fields: { version: 'v1', err: expect.any(TypeError) },
      message: 'cannot apply the version: it is rejected',
    },
  ])
  const next = server.publish({ version: 'v2', configs: [shopConfig()] })
  expect(await server.requestFor(next)).toMatchObject({ versionInfo: 'v2', errorDetail: null })
})

test('a version that could not be applied is retried, and then accepted', async () => {
  const { server } = xds
  let attempts = 0
  open(server.port, () => {
    attempts += 1
    const isRetryable = attempts < 3
    return Promise.resolve(isRetryable ? { message: 'too slow', isRetryable } : undefined)
  })
  await waitFor('the stream', () => server.streams() === 1)
  const nonce = server.publish({ version: 'v1', configs: [shopConfig()] })
  const results = () => server.requests.filter(({ responseNonce }) => responseNonce === nonce)
  await waitFor('the acceptance', () => results().some(({ errorDetail }) => errorDetail === null))
  expect(results()).toMatchObject([
    { versionInfo: '', errorDetail: { message: 'too slow' } },
    { versionInfo: 'v1', errorDetail: null },
  ])
})

test.each([
  ['refuses connections', false],
  ['hangs', true],
])('an attempt uses the next address if the first one %s', async (_, hangs) => {
  const { port } = xds.server
  let connections = 0
  if (hangs) {
    const silent = createServer((socket) => {
      connections += 1
      socket
        .on('close', () => (connections -= 1))
        .on('error', () => undefined)
        .resume()
    })
    await new Promise<void>((resolve) => {
      silent.listen(port, '127.0.0.2', resolve)
    })
    xds.cleanups.push(() => silent.close())
  }
  const addresses = `ipv4:127.0.0.2:${String(port)},127.0.0.1:${String(port)}`
  const { log } = open(port, accept, { env: { CONFIG_GRPC_XDS_SERVER_URL: addresses } })
  await waitFor('the stream', () => xds.server.streams() === 1)
  await waitFor('the connection to the first one to close', () => connections === 0)
  await xds.server.requestFor(xds.server.publish({ version: 'v1', configs: [shopConfig()] }))
  expect(log.filter(({ level }) => level !== 'info')).toEqual([])
})

test('TCP keepalive detects a server that vanishes without a close', async () => {
  const { port } = xds.server
  open(port, accept)
  await waitFor('the stream', () => xds.server.streams() === 1)
  // Columns: local and remote address, state, queues, and the pending timer (02: keepalive).
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const timerOf = (line: string) => / 02:([0-9A-F]{8}) /.exec(line)?.[1]
  const connections = async () =>
    (await readFile('/proc/net/tcp', 'utf8')).split('\n').filter((line) => {
      return line.trim().split(/\s+/)[2] === remote
    })
  let timer: string | undefined // not pending at each moment
  await waitFor('the timer', async () => {
    timer = (await connections()).map(timerOf).find((one) => one !== undefined)
    return timer !== undefined
  })
  const jiffies = parseInt(timer ?? '', 16)
  expect(jiffies).toBeLessThanOrEqual(10 * 100)
})
