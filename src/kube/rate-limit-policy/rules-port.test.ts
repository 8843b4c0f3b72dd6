// The port for limiters: it is opened with retries, and then sends the newest version.
import { expect, test } from '@jest/globals'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createFakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { type CompiledVersion, openRulesPort, type RulesServer } from './rules-port.ts'

const versionOf = (version: string): CompiledVersion => ({ version, resources: [] })

function start(outcomes: readonly ('fails' | 'hangs')[], closeMs = 0) {
  const scheduler = createFakeScheduler()
  const metrics = createMetrics()
  const attemptsAtMs: number[] = []
  const logged: string[] = []
  const states: string[] = []
  const sent: string[] = []
  const limiter = { node: 'n', address: 'a', active: '', rejected: undefined }
  let isClosed = false
  const server: RulesServer = {
    port: 1,
    publish: ({ version }) => sent.push(version),
    replicas: () => [limiter],
    close: () =>
      new Promise((resolve) => {
        scheduler.after(closeMs, () => {
          isClosed = true
          resolve()
        })
      }),
  }
  const hung = Promise.withResolvers<undefined>()
  const log = (level: string) => (fields: object | string, msg?: string) =>
    logged.push(`${level} ${typeof fields === 'string' ? fields : String(msg)}`)
  const port = openRulesPort(
    {
      async openServer() {
        const outcome = outcomes[attemptsAtMs.length]
        attemptsAtMs.push(scheduler.nowMs())
        if (outcome === 'fails') throw new Error('EADDRINUSE')
        if (outcome === 'hangs') await hung.promise
        return server
      },
      onPort: (state) => states.push(state),
      scheduler,
      random: () => 0.5,
      metrics,
      log: { info: log('info'), warn: log('warn'), error: log('error') },
    },
    { onChange: () => undefined, onLeave: () => undefined, onAudit: () => undefined },
  )
  const failures = async () => (await metrics.backgroundFailures.get()).values
  const isServerClosed = () => isClosed
  return { port, scheduler, attemptsAtMs, logged, states, sent, hung, failures, isServerClosed }
}

test('a port that cannot be opened is retried with back-off, and logged once', async () => {
  const { port, scheduler, attemptsAtMs, logged, states, sent, failures } = start([
    'fails',
    'fails',
    'fails',
  ])
  port.publish(versionOf('one'))
  port.publish(versionOf('two'))
  await scheduler.advance(1500 + 3000)
  expect(port.replicas()).toEqual([])
  await scheduler.advance(6000)
  expect(attemptsAtMs).toEqual([0, 1500, 4500, 10_500])
  expect(logged).toEqual([
    'error the port for limiters cannot be opened: retrying',
    'info serving the rules of RateLimitPolicies',
  ])
  expect(states).toEqual(['down', 'down', 'down', 'up'])
  expect(await failures()).toEqual([{ labels: { task: 'open-ads-port' }, value: 3 }])
  expect(sent).toEqual(['two'])
  expect(port.replicas()).toHaveLength(1)
  port.publish(versionOf('three'))
  expect(sent).toEqual(['two', 'three'])
})

test('a close ends the retries', async () => {
  const { port, scheduler, attemptsAtMs } = start(['fails'])
  await scheduler.advance(0)
  await port.close()
  await scheduler.advance(60_000)
  expect(attemptsAtMs).toEqual([0])
})

test('a close closes a server that opens later, and publishes nothing to it', async () => {
  const { port, scheduler, hung, isServerClosed, sent, states } = start(['hangs'])
  port.publish(versionOf('one'))
  const closing = port.close()
  hung.resolve(undefined)
  await scheduler.advance(0)
  await closing
  expect([isServerClosed(), sent, states]).toEqual([true, [], []])
})

test.each<readonly [string, readonly 'hangs'[], number]>([
  ['an open that hangs', ['hangs'], 0],
  ['a server that does not close', [], 60_000],
])('a close does not wait for %s', async (_name, outcomes, closeMs) => {
  const { port, scheduler, logged } = start(outcomes, closeMs)
  await scheduler.advance(0)
  let isClosed = false
  void port.close().then(() => (isClosed = true))
  await scheduler.advance(1500)
  expect(isClosed).toBe(true)
  expect(logged).toContain('warn the port for limiters was not closed within the deadline')
})
