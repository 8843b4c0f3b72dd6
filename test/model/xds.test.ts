// Explores the xDS subscription: every interleaving of responses, of their results, and of streams
// that open and close; each mutant breaks an invariant.
import { expect, test } from '@jest/globals'
import { stepSession } from '../../src/clients/xds/session.ts'
import { explore } from './explore.ts'
import { explored } from './explored.ts'
import { broken, type Step, xdsModel } from './xds-model.ts'

const noProcesses = { processes: [], timeouts: 0, crashes: 0 }

test('the subscription holds', async () => {
  const found = await explore({ model: xdsModel(), ...noProcesses })
  process.stdout.write(explored('xds', found))
  expect(Object.fromEntries(found.violations)).toEqual({})
  expect(found.complete).toBe(true)
  expect(found.states).toBeGreaterThan(1000)
})

const mutants: readonly { name: string; step: Step; breaks: string }[] = [
  {
    name: 'a result is sent on whichever stream is open',
    step: (session, event) => {
      const { applying, stream = 0 } = session
      const moved = applying && { ...applying, stream }
      return stepSession(
        event.kind === 'applied' ? { ...session, applying: moved } : session,
        event,
      )
    },
    breaks: broken.foreignNonce,
  },
  {
    name: 'a rejection names the rejected version',
    step: (session, event) => {
      const { session: next, actions } = stepSession(session, event)
      const version = session.applying?.version ?? ''
      return {
        session: next,
        actions: actions.map((action) =>
          action.kind === 'send' && action.error !== undefined ? { ...action, version } : action,
        ),
      }
    },
    breaks: broken.wrongVersion,
  },
  {
    name: 'a new stream starts with the active version',
    step: (session, event) => {
      const { session: next, actions } = stepSession(session, event)
      const isOpening = event.kind === 'opened'
      return {
        session: next,
        actions: actions.map((action) =>
          action.kind === 'send' && isOpening ? { ...action, version: session.lastGood } : action,
        ),
      }
    },
    breaks: broken.wrongVersion,
  },
  {
    name: 'a response that arrives while another is applied is dropped',
    step: (session, event) =>
      event.kind === 'received' && session.applying !== undefined
        ? { session, actions: [] }
        : stepSession(session, event),
    breaks: broken.unacknowledged,
  },
  {
    name: 'a waiting response is dropped when its stream closes',
    step: (session, event) =>
      stepSession(event.kind === 'closed' ? { ...session, waiting: undefined } : session, event),
    breaks: broken.notApplied,
  },
  {
    name: 'a response does not wait',
    step: (session, event) =>
      event.kind === 'received'
        ? stepSession({ ...session, applying: undefined }, event)
        : stepSession(session, event),
    breaks: broken.concurrent,
  },
  {
    name: 'a response that failed is not retried',
    step: (session, event) => {
      const { session: next, actions } = stepSession(session, event)
      if (event.kind !== 'applied' || event.error?.isRetryable !== true || !next.isRetry) {
        return { session: next, actions }
      }
      const idle = { ...next, applying: undefined, isRetry: false }
      return { session: idle, actions: actions.filter(({ kind }) => kind !== 'apply') }
    },
    breaks: broken.notRetried,
  },
  {
    name: 'each retry that fails is a rejection',
    step: (session, event) =>
      stepSession(event.kind === 'applied' ? { ...session, isRetry: false } : session, event),
    breaks: broken.repeated,
  },
  {
    name: 'the first waiting response is kept, not the newest',
    step: (session, event) =>
      event.kind === 'received' && session.waiting !== undefined
        ? { session, actions: [] }
        : stepSession(session, event),
    breaks: broken.unacknowledged,
  },
]

test.each(mutants)('the explorer finds: $name', async ({ step, breaks }) => {
  const found = await explore({ model: xdsModel(step), ...noProcesses })
  expect([...found.violations.keys()]).toContain(breaks)
})
