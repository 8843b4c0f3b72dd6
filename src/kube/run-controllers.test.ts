// Controllers of a process: when they watch and lead, and that defects and lost leadership exit.
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import type { Election } from './lease.ts'
import { type Controller, runControllers } from './run-controllers.ts'
import { untilAborted } from './scheduler.ts'

const { promise: never } = Promise.withResolvers<never>()
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

/** What happened, in order. */
let steps: string[]
let cleanups: (() => Promise<void>)[]

beforeEach(() => {
  steps = []
  cleanups = []
  jest.spyOn(process, 'exit').mockImplementation((code) => {
    steps.push(`exit ${code}`)
    return undefined as never
  })
})
afterEach(async () => {
  for (const cleanup of cleanups) await cleanup()
  jest.useRealTimers()
  jest.restoreAllMocks()
})

const controllerOf = (name: string, more: Partial<Controller> = {}): Controller => ({
  async watch(signal) {
    steps.push(`${name} watches`)
    await untilAborted(signal)
    steps.push(`${name} watched`)
  },
  async lead(signal) {
    steps.push(`${name} leads`)
    await untilAborted(signal)
    steps.push(`${name} led`)
  },
  updateMetrics: () => steps.push(`${name} metrics`),
  ...more,
})
const electionOf = (more: Partial<Election> = {}): Election => ({
  acquire: () => Promise.resolve(true),
  async renew(signal) {
    await untilAborted(signal)
    return 'stopped'
  },
  isLeading: () => true,
  isStuck: () => false,
  release() {
    steps.push('release')
    return Promise.resolve()
  },
  ...more,
})
const run = async (
  controllers: readonly Controller[],
  election: Election,
  synced: Promise<void> = Promise.resolve(),
) => {
  const fatal = ({ err }: { err: unknown }) => steps.push(`fatal ${String(err)}`)
  runControllers({ log: { fatal } as never, cleanups }, { controllers, election, synced })
  await settle()
}

/** Runs the cleanups as a stop does; returns the steps since then. */
async function stop() {
  steps = []
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
  return steps
}

test('all controllers watch, update metrics and lead; a stop ends the lead first', async () => {
  await run([controllerOf('a'), controllerOf('b')], electionOf())
  expect(steps.toSorted()).toEqual(
    ['a', 'b'].flatMap((name) => [`${name} leads`, `${name} metrics`, `${name} watches`]),
  )
  expect(await stop()).toEqual(['a led', 'b led', 'release', 'a watched', 'b watched'])
})

test('acquires the Lease only after the first lists', async () => {
  const { promise: synced, resolve } = Promise.withResolvers<undefined>()
  const election = electionOf({
    acquire() {
      steps.push('acquire')
      return Promise.resolve(true)
    },
  })
  await run(
    [controllerOf('a')],
    election,
    synced.then(() => undefined),
  )
  expect(steps).not.toContain('acquire')
  resolve(undefined)
  await settle()
  expect(steps.slice(-2)).toEqual(['acquire', 'a leads'])
})

test('a stop before the first lists completes without a lead', async () => {
  const acquire = ({ aborted }: AbortSignal) => Promise.resolve(!aborted)
  await run([controllerOf('a')], electionOf({ acquire }), never)
  expect(await stop()).toEqual(['a watched'])
})

test('metrics are updated every 15 s until a stop', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'performance', 'setImmediate'] })
  await run([controllerOf('a')], electionOf())
  const updates = () => steps.filter((step) => step === 'a metrics').length
  await jest.advanceTimersByTimeAsync(14_999)
  expect(updates()).toBe(1)
  await jest.advanceTimersByTimeAsync(1)
  expect(updates()).toBe(2)
  await stop()
  await jest.advanceTimersByTimeAsync(60_000)
  expect([updates(), jest.getTimerCount()]).toEqual([0, 0])
})

test('lost leadership exits the process', async () => {
  await run([controllerOf('a')], electionOf({ renew: () => Promise.resolve('lost') }))
  expect(steps.slice(-2)).toEqual([
    'fatal OperatorError: lost leadership: another replica may lead',
    'exit 1',
  ])
})

const defect = () => Promise.reject(new Error('defect'))

test.each<readonly [string, Partial<Controller>, Partial<Election>]>([
  ['watch', { watch: defect }, {}],
  ['lead', { lead: defect }, {}],
  ['election', {}, { acquire: defect }],
])('a defect of the %s exits the process', async (_name, controller, election) => {
  await run([controllerOf('a', controller)], electionOf(election))
  expect(steps.filter((step) => /fatal|exit/.test(step))).toEqual(['fatal Error: defect', 'exit 1'])
})
