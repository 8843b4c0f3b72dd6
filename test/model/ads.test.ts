// Explores versions on their way from the controller to a limiter, with both real state machines;
// each mutant of the server's breaks an invariant.
import { expect, test } from '@jest/globals'
import { stepStream } from '../../src/grpc/ads/stream-state.ts'
import { adsModel, broken, type Step } from './ads-model.ts'
import { explore } from './explore.ts'
import { explored } from './explored.ts'

const noProcesses = { processes: [], timeouts: 0, crashes: 0 }

test('a connected limiter ends with the newest version or its rejection', async () => {
  const found = await explore({ model: adsModel(), ...noProcesses })
  process.stdout.write(explored('ads', found))
  expect(Object.fromEntries(found.violations)).toEqual({})
  expect(found.complete).toBe(true)
  expect(found.states).toBeGreaterThan(10_000)
})

const mutants: readonly { name: string; step: Step; breaks: string }[] = [
  {
    name: 'a version is sent while another is in flight',
    step: (state, event) =>
      stepStream(event.kind === 'published' ? { ...state, inFlight: undefined } : state, event),
    breaks: broken.concurrent,
  },
  {
    name: 'the next version does not wait until the last one is written',
    step: (state, event) => {
      const inFlight = state.inFlight && { ...state.inFlight, isWritten: true }
      return stepStream({ ...state, inFlight }, event)
    },
    breaks: broken.concurrent,
  },
  {
    name: 'a rejected version is re-sent',
    step: (state, event) => {
      const { state: next, ...step } = stepStream(state, event)
      const { rejected, newest } = next
      const isRejected = rejected !== undefined && rejected.version === newest?.version
      if (!isRejected || next.inFlight !== undefined) return { state: next, ...step }
      return stepStream({ ...next, rejected: undefined }, { kind: 'published', version: newest })
    },
    breaks: broken.resent,
  },
  {
    name: 'a version that is published while another is in flight is dropped',
    step: (state, event) =>
      event.kind === 'published' && state.inFlight !== undefined
        ? { state, send: undefined, isUnproductive: false }
        : stepStream(state, event),
    breaks: broken.unsettled,
  },
  {
    name: 'a version counts as active when it is sent',
    step: (state, event) => {
      const { state: next, ...step } = stepStream(state, event)
      const active = step.send?.version ?? next.active
      return { state: { ...next, active }, ...step }
    },
    breaks: broken.notAccepted,
  },
  {
    name: 'a rejection counts as an acceptance',
    step: (state, event) => {
      const version = state.inFlight?.version.version ?? ''
      const accepted = { ...event, version, error: undefined }
      return stepStream(state, event.kind === 'request' ? (accepted as typeof event) : event)
    },
    breaks: broken.notAccepted,
  },
  {
    name: 'an acceptance after a rejection is ignored',
    step: (state, event) =>
      event.kind === 'request' && event.nonce === state.rejected?.nonce
        ? { state, send: undefined, isUnproductive: true }
        : stepStream(state, event),
    breaks: broken.unsettled,
  },
  {
    name: 'the active version is not sent after a rejection',
    step: (state, event) => {
      const isRollback = event.kind === 'published' && event.version.version === state.active
      return isRollback && state.inFlight === undefined
        ? { state: { ...state, newest: event.version }, send: undefined, isUnproductive: false }
        : stepStream(state, event)
    },
    breaks: broken.wrongResult,
  },
  {
    name: 'a rejection is kept after a rollback',
    step: (state, event) => {
      const { state: next, ...step } = stepStream(state, event)
      return { state: { ...next, rejected: next.rejected ?? state.rejected }, ...step }
    },
    breaks: broken.wrongResult,
  },
]

test.each(mutants)('the explorer finds: $name', async ({ step, breaks }) => {
  const found = await explore({ model: adsModel(step), ...noProcesses }, { stopAtFirst: true })
  expect([...found.violations.keys()]).toContain(breaks)
})
