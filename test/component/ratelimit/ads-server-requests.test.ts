// What the controller's xDS server lists for a limiter, by its requests: accepted, rejected, or
// neither.
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { AUDIT_TYPE_URL } from '../../../src/limiter/stats/audit-counts.ts'
import {
  type AdsTestClient,
  type ControllerAdsServer,
  openAdsTestClient,
  startControllerAdsServer,
} from '../../kit/ratelimit/controller-ads-server.ts'
import { shopConfig } from '../../kit/ratelimit/xds-limiter.ts'
import { waitFor } from '../../kit/wait-for.ts'

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
