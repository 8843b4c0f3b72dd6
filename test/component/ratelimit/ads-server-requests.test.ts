// What the controller's xDS server lists for a limiter, by its requests: accepted, rejected, or
// neither; and which connections it closes, because they do not subscribe.
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { AUDIT_TYPE_URL } from '../../../src/limiter/stats/audit-counts.ts'
import { ADS_METHOD } from '../../../src/protobuf/discovery.ts'
import {
  type AdsTestClient,
  type ControllerAdsServer,
  openAdsTestClient,
  startControllerAdsServer,
} from '../../kit/ratelimit/controller-ads-server.ts'
import { shopConfig } from '../../kit/ratelimit/xds-limiter.ts'
import { waitFor, withinDeadline } from '../../kit/wait-for.ts'

/** Of connections that do not subscribe; far longer than this process stalls. */
const KEEPALIVE_MS = 1500

let server: ControllerAdsServer
const clients: AdsTestClient[] = []

beforeEach(async () => {
  server = await startControllerAdsServer()
})
afterEach(async () => {
  for (const client of clients.splice(0)) client.close()
  await server.close()
})

function open(options?: Parameters<typeof openAdsTestClient>[1]): AdsTestClient {
  const client = openAdsTestClient(server.port, options)
  clients.push(client)
  return client
}

test('a version that the client has not acknowledged is not active', async () => {
  const client = open({ accepts: false })
  client.send({ nonce: 'of an earlier stream', version: 'a' })
  server.publish('a', shopConfig())
  await waitFor('the version', () => client.versions.length === 1)
  client.accept('other nonce')
  client.send({ typeUrl: 'type/other' })
  await waitFor('the fault', async () => (await server.faults())['type'] === 1)
  expect(server.replicas()).toMatchObject([{ active: '', rejected: undefined }])
  client.accept()
  await server.active('a')
})

test('a version may be accepted after its rejection; a rollback is sent in any case', async () => {
  const client = open({ accepts: false })
  client.send({})
  const publish = async (version: string, count: number) => {
    server.publish(version, shopConfig())
    await waitFor(version, () => client.versions.length === count)
  }
  await publish('a', 1)
  client.accept()
  await server.active('a')
  await publish('b', 2)
  client.reject('too slow')
  await waitFor('the rejection', () => server.replicas()[0]?.rejected?.message === 'too slow')
  client.reject('too large')
  await waitFor('the other fault', () => server.replicas()[0]?.rejected?.message === 'too large')
  client.accept()
  expect(await server.active('b')).toMatchObject([{ rejected: undefined }])
  await publish('c', 3)
  client.reject('too slow')
  await waitFor('the rejection', () => server.replicas()[0]?.rejected?.version === 'c')
  await publish('b', 4) // so that the client does not retry c
  client.accept()
  await waitFor('the acceptance', () => server.replicas()[0]?.rejected === undefined)
  expect(client.versions).toEqual(['a', 'b', 'c', 'b'])
})

const RULE = 'r'.repeat(22)

test('reports are added, and malformed ones are faults', async () => {
  const client = open()
  const report = (...resourceNames: readonly string[]) => {
    client.send({ typeUrl: AUDIT_TYPE_URL, resourceNames })
  }
  report(`${RULE}=2`)
  report(`${RULE}=x`, `${RULE}=100`)
  report(`${RULE}=3`)
  await waitFor('the reports', () => server.audited.get(RULE) === 5)
  expect(await server.faults()).toMatchObject({ protocol: 1, type: 0 })
  expect(server.log).toEqual(['a limiter sends a malformed report'])
  for (let i = 0; i < 100; i += 1) report(`${RULE}=1`)
  await waitFor('the status', () => client.closed.length === 1)
  expect(client.closed[0]).toContain('too many requests')
})

test('requests that settle no version are bounded', async () => {
  const client = open()
  for (let i = 0; i < 150; i += 1) client.send({ nonce: 'none', error: 'no' })
  await waitFor('the status', () => client.closed.length === 1)
  expect(client.closed[0]).toContain('too many requests')
  expect(await server.faults()).toMatchObject({ abuse: 1 })
})

test('a connection without a subscription is closed; the log shows what is missing', async () => {
  const headers = { ':method': 'POST', ':path': ADS_METHOD, 'content-type': 'application/grpc' }
  const openSession = (port: number) => connectHttp2(`http://127.0.0.1:${port}`)
  const openCall = (port: number, endStream: boolean) => {
    const session = openSession(port)
    session.request(headers, { endStream }).on('error', () => undefined) // 'close' follows
    return session
  }
  const cases = [
    ['the client has not opened a stream', (port: number) => connect(port, '127.0.0.1').resume()],
    ['the client has not opened a stream', openSession],
    ['the client has not subscribed to rules', (port: number) => openCall(port, false)],
    ['the client has no open stream', (port: number) => openCall(port, true)],
  ] as const
  const closing = cases.map(async ([reason, openConnection]) => {
    const own = await startControllerAdsServer({ keepaliveMs: KEEPALIVE_MS })
    const connection = openConnection(own.port).on('error', () => undefined) // 'close' follows
    const closed = new Promise((resolve) => connection.on('close', resolve))
    await withinDeadline('the close', closed, 5 * 2 * KEEPALIVE_MS).finally(() => own.close())
    expect(own.log).toEqual([`the connection of a limiter is closed: ${reason}`])
  })
  await Promise.all(closing)
})
