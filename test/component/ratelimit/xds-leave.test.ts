// The limiter's xDS client at the controller's server: a limiter that stops does not count, one
// that loses its connection counts until it could have reconnected.
import { once } from 'node:events'
import { connect as connectHttp2, createServer } from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import { type AdsClientDeps, openAdsClient } from '../../../src/clients/xds/ads-client.ts'
import { xdsSettings } from '../../../src/clients/xds/settings.ts'
import { parseConfig } from '../../../src/config/config.ts'
import { createPolicyReports } from '../../../src/kube/rate-limit-policy/report-policies.ts'
import { createRuleVersions } from '../../../src/kube/rate-limit-policy/rule-versions.ts'
import {
  ADS_METHOD,
  CONTROL_PLANE,
  LEAVE_TYPE_URL,
  readDiscoveryRequest,
  writeDiscoveryRequest,
  writeDiscoveryResponse,
} from '../../../src/protobuf/discovery.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { PolicyWorld } from '../../kit/policies/policy-world.ts'
import { startControllerAdsServer } from '../../kit/ratelimit/controller-ads-server.ts'
import { shopConfig, xdsEnvironment } from '../../kit/ratelimit/xds-limiter.ts'
import { CONFIG_TYPE_URL } from '../../kit/ratelimit/xds-messages.ts'
import { waitFor, withinDeadline } from '../../kit/wait-for.ts'

/** How long a client that stops waits for the server. */
const COMPLETE_MS_MAX = 500
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
})

/** The leader's server with a version, and the numbers of limiters that it reports. */
async function start() {
  const versions = createRuleVersions()
  versions.record([], { version: 'v1', resources: [], outcomes: new Map(), active: new Map() })
  let missingMax = 0
  const server = await startControllerAdsServer({
    onChange: () => (missingMax = Math.max(missingMax, reports.counts().missing)),
    onLeave: (active) => {
      reports.leave(active)
    },
  })
  cleanups.push(() => server.close())
  const { reportDeps } = new PolicyWorld([])
  const reports = createPolicyReports({ ...reportDeps, versions, limiters: server.replicas })
  server.publish('v1', shopConfig())
  return { server, counts: reports.counts, missingMax: () => missingMax }
}

function openClient(port: number) {
  const failures: string[] = []
  const record = (_: object, sentence: string) => failures.push(sentence)
  const client = openAdsClient({
    config: parseConfig(xdsSettings, xdsEnvironment(port)),
    typeUrl: CONFIG_TYPE_URL,
    apply: () => Promise.resolve(undefined),
    onFailure: () => undefined,
    metrics: createMetrics(),
    log: { info: () => undefined, warn: record, error: record } as unknown as AdsClientDeps['log'],
  })
  cleanups.push(() => client.stop())
  return { ...client, failures }
}

test('a limiter that stops does not count; one that reconnects does', async () => {
  const { server, counts, missingMax } = await start()
  const [first, second] = [openClient(server.port), openClient(server.port)]
  await server.active('v1', 'v1')
  await first.stop()
  await server.active('v1')
  expect([counts(), missingMax()]).toEqual([{ current: 1, outdated: 0, missing: 0 }, 0])
  second.reconnect()
  await waitFor('the close of the stream', () => missingMax() === 1)
  await server.active('v1')
  expect(counts()).toEqual({ current: 1, outdated: 0, missing: 0 })
  expect([...first.failures, ...second.failures]).toEqual([])
})

/** A gRPC message with its prefix. */
function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

test.each<readonly [string, (socket: Socket) => unknown]>([
  ['closed', (socket) => socket.destroy()],
  ['half-closed', (socket) => socket.end()],
  ['reset', (socket) => socket.resetAndDestroy()],
])('a limiter whose connection is %s counts', async (_, breakConnection) => {
  const { server, counts } = await start()
  const socket = connect(server.port, '127.0.0.1')
  const session = connectHttp2('http://127.0.0.1', { createConnection: () => socket })
  session.on('error', () => undefined) // 'close' follows
  const headers = { ':method': 'POST', ':path': ADS_METHOD, 'content-type': 'application/grpc' }
  const stream = session.request(headers, { endStream: false })
  stream.on('error', () => undefined).resume() // 'close' follows
  const about = { node: undefined, version: '', nonce: '', error: undefined }
  stream.write(framed(writeDiscoveryRequest({ ...about, typeUrl: CONFIG_TYPE_URL })))
  await server.active('')
  expect(counts()).toMatchObject({ outdated: 1, missing: 0 })
  breakConnection(socket)
  await server.active()
  expect(counts()).toEqual({ current: 0, outdated: 0, missing: 1 })
})

/** A server that sends one version, completes no stream, and records the types of requests. */
async function startHanging(controlPlane: string) {
  const types: string[] = []
  const about = { version: 'v1', nonce: 'n', typeUrl: CONFIG_TYPE_URL, controlPlane }
  const server = createServer()
  server.on('stream', (stream) => {
    stream.on('error', () => undefined) // the client resets it
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
    stream.write(framed(writeDiscoveryResponse({ ...about, resources: [] })))
    let received = Buffer.alloc(0)
    stream.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      while (received.length >= 5 && received.length >= 5 + received.readUInt32BE(1)) {
        const end = 5 + received.readUInt32BE(1)
        types.push(readDiscoveryRequest(received.subarray(5, end)).typeUrl)
        received = received.subarray(end)
      }
    })
    stream.on('close', () => types.push('close'))
  })
  server.listen(0, '127.0.0.1')
  cleanups.push(() => server.close())
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, types }
}

test.each([
  ['the controller is informed', CONTROL_PLANE, [LEAVE_TYPE_URL]],
  ['another server is not', 'other', []],
])('a stop does not wait for a server that hangs: %s', async (_, controlPlane, last) => {
  const { port, types } = await startHanging(controlPlane)
  const client = openClient(port)
  await waitFor('the acceptance', () => types.length === 2)
  await withinDeadline('the stop', client.stop(), 5 * COMPLETE_MS_MAX)
  await waitFor('the close', () => types.includes('close'))
  expect(types).toEqual([CONFIG_TYPE_URL, CONFIG_TYPE_URL, ...last, 'close'])
  expect(client.failures).toEqual([])
})
