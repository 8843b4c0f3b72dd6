// The options of the driver's client that the plan and this project's bounds determine.
import type { PeerCertificate } from 'node:tls'
import { expect, test } from '@jest/globals'
import { policies } from 'cassandra-driver'
import { BACK_OFF, driverOptions } from './driver-options.ts'
import type { CassandraPlan } from './settings.ts'
import { kindOptions, SpeculativeReads } from './statement-kinds.ts'

const plan: CassandraPlan = {
  hosts: ['db-0.db', '10.0.0.1', '::1', '2001:db8::2'],
  port: 9142,
  localDc: 'dc1',
  keyspace: 'links',
  credentials: undefined,
  tls: undefined,
  isGlobal: false,
}
const tls = { ca: 'a CA', cert: 'a certificate', key: 'a key' }

test('an IPv6 address has the port, so that the driver can distinguish its colons', () => {
  const contactPoints = ['db-0.db', '10.0.0.1', '[::1]:9142', '[2001:db8::2]:9142']
  expect(driverOptions(plan, true)).toMatchObject({
    contactPoints,
    protocolOptions: { port: 9142 },
  })
})

test('the keyspace is used only if it is wanted', () => {
  expect(driverOptions(plan, true).keyspace).toBe('links')
  expect(driverOptions(plan, false)).not.toHaveProperty('keyspace')
})

test('without credentials and TLS the driver has no such option', () => {
  const options = driverOptions(plan, true)
  expect(options).not.toHaveProperty('credentials')
  expect(options).not.toHaveProperty('sslOptions')
})

test('the credentials are those of the plan', () => {
  const credentials = { username: 'me', password: 'secret' }
  expect(driverOptions({ ...plan, credentials }, true).credentials).toEqual(credentials)
})

test('TLS verifies the CA of a node, but not its name', () => {
  const { sslOptions } = driverOptions({ ...plan, tls }, true)
  expect(sslOptions).toEqual({
    ...tls,
    rejectUnauthorized: true,
    checkServerIdentity: expect.any(Function),
  })
  const certificate = { subject: { CN: 'other' } } as unknown as PeerCertificate
  expect(sslOptions?.checkServerIdentity?.('10.0.0.1', certificate)).toBeUndefined()
})

test('a hung node is detected within seconds, and a connection is opened in advance', () => {
  expect(driverOptions(plan, true)).toMatchObject({
    pooling: { heartBeatInterval: 5000, warmup: true },
    protocolOptions: { maxSchemaAgreementWaitSeconds: 20 },
    socketOptions: {
      ...{ connectTimeout: 2000, readTimeout: 5000, defunctReadTimeoutThreshold: 16 },
      ...{ keepAlive: true, tcpNoDelay: true },
    },
  })
})

test('a bigint column is a bigint, and the driver sends no reports to its vendor', () => {
  expect(driverOptions(plan, true)).toMatchObject({
    encoding: { useBigIntAsLong: true },
    monitorReporting: { enabled: false },
    applicationName: 'curtail',
  })
})

test('every kind of statement has a profile', () => {
  const { profiles = [] } = driverOptions(plan, true)
  expect(profiles.map(({ name }) => name)).toEqual(Object.keys(kindOptions))
})

test('only nodes of the local data center are used', () => {
  const { localDataCenter, policies: used } = driverOptions(plan, true)
  expect(localDataCenter).toBe('dc1')
  expect(used?.loadBalancing).toBeInstanceOf(policies.loadBalancing.DefaultLoadBalancingPolicy)
  expect(used?.loadBalancing).toMatchObject({ localDc: 'dc1' })
  expect(used?.speculativeExecution).toBeInstanceOf(SpeculativeReads)
})

test('a lost node is reconnected after pauses that grow to seconds', () => {
  const reconnection = driverOptions(plan, true).policies?.reconnection
  const schedule = reconnection?.newSchedule()
  const pauses = Array.from({ length: 10 }, () => Number(schedule?.next().value))
  expect(BACK_OFF).toEqual({ firstMs: 250, maxMs: 5000 })
  expect(pauses[0]).toBeGreaterThanOrEqual(250)
  expect(pauses[0]).toBeLessThanOrEqual(288)
  expect(pauses[9]).toBeGreaterThanOrEqual(4250)
  expect(pauses[9]).toBeLessThanOrEqual(5000)
})
