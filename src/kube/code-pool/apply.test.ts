// Steps are idempotent: the server's rejection of a retried step is not a failure.
import { expect, test } from '@jest/globals'
import type { RefillStep } from '../../codes/observed-state.ts'
import type { KubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import { applyStatus, applyStep, type PoolOwnership } from './apply.ts'
import type { CodePool } from './code-pool.ts'
import { inputsHashOf, isProblem, jobNameOf, parseTemplate } from './refill-jobs.ts'

type Call = Parameters<KubeApi['call']>[0]

const { signal } = new AbortController()
const parsed = parseTemplate('spec: { containers: [{ name: refill, image: i }] }')
const template = isProblem(parsed) ? undefined : parsed
const pool: CodePool = {
  metadata: { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '7' },
  spec: {
    ...{ lowWater: 2000, target: 5000, paused: false },
    codeSecret: { name: 's', key: 'secret' },
  },
}
const start: RefillStep = { kind: 'start', refill: 3, fillTo: 9000 }
const cancel: RefillStep = { kind: 'cancel', job: 'j', reason: 'paused' }
const remove: RefillStep = { kind: 'remove', job: 'j' }

/** Applies a step with a server that responds to each call with `status`. */
async function apply(
  step: RefillStep,
  { status = 200, reason = 'R', isOwned = true, hasTemplate = true } = {},
) {
  const calls: Call[] = []
  const ownerships: PoolOwnership[] = []
  const api: KubeApi = {
    call(call) {
      calls.push(call)
      return status < 300
        ? Promise.resolve({})
        : Promise.reject(new KubeError('no', { status, reason }))
    },
    async *lines() {
      yield await Promise.resolve('')
    },
  }
  const ownPool = (ownership: PoolOwnership) => {
    ownerships.push(ownership)
    return Promise.resolve(isOwned)
  }
  const context = { pool, storeName: 'shared', owner: 'n/p', signal }
  const withTemplate = { ...context, template: hasTemplate ? template : undefined }
  return {
    shouldContinue: await applyStep({ api, ownPool }, step, withTemplate),
    calls,
    ownerships,
    api,
  }
}

test.each([
  [start, 409, 'AlreadyExists'],
  [cancel, 404, 'NotFound'],
  [remove, 404, 'NotFound'],
])('%j succeeds even if the server responds with %i %s', async (step, status, reason) => {
  expect((await apply(step)).shouldContinue).toBe(true)
  expect((await apply(step, { status, reason })).shouldContinue).toBe(true)
  const failures = [
    { status: 403, reason: 'Forbidden' },
    { status: 409, reason: 'Conflict' }, // of a quota, for example
    { status: 500, reason: 'InternalError' },
    ...(step.kind === 'start' ? [{ status: 404, reason: 'NotFound' }] : []),
  ]
  const message = step.kind === 'start' ? 'no' : 'Cannot delete the Job j: no'
  for (const failure of failures)
    await expect(apply(step, failure)).rejects.toMatchObject({ ...failure, message })
})

test('the Job of a refill always has the same name, so it is created once', async () => {
  const { calls } = await apply(start)
  expect(calls).toMatchObject([
    { method: 'POST', body: { metadata: { name: jobNameOf(pool, 3) } }, signal },
  ])
  const other = { ...pool, metadata: { ...pool.metadata, uid: 'v' } }
  const names = [jobNameOf(pool, 3), jobNameOf(pool, 4), jobNameOf(other, 3)]
  expect(new Set(names).size).toBe(3)
  expect(jobNameOf({ ...pool }, 3)).toBe(names[0])
})

test('the name of a Job is a valid DNS label of at most 63 characters', () => {
  const name = `${'a'.repeat(38)}.-${'b'.repeat(200)}`
  const long = jobNameOf({ ...pool, metadata: { ...pool.metadata, name } }, 1)
  expect(long).toMatch(/^a{38}-refill-[0-9a-f]{10}$/)
})

test('without a template no Job is created, and the next step is not applied', async () => {
  const { shouldContinue, calls } = await apply(start, { hasTemplate: false })
  expect([shouldContinue, calls]).toEqual([false, []])
})

test('a pool gets its owner and marks; if that fails, the next step is not applied', async () => {
  const own: RefillStep = { kind: 'own', replaces: 'n/q' }
  const ownership = { pool: 'shared', owner: 'n/p', replaces: 'n/q', lowWater: 2000, target: 5000 }
  const { shouldContinue, ownerships, calls } = await apply(own)
  expect([shouldContinue, ownerships, calls]).toEqual([true, [ownership], []])
  expect((await apply(own, { isOwned: false })).shouldContinue).toBe(false)
})

test('a Job is deleted with its pods', async () => {
  for (const step of [cancel, remove]) {
    const { calls } = await apply(step)
    expect(calls).toMatchObject([
      { method: 'DELETE', body: { propagationPolicy: 'Background' }, signal },
    ])
  }
})

test('a status is written only over the version it was built from', async () => {
  const { api, calls } = await apply(remove)
  await applyStatus(api, { pool, status: { level: 1 }, signal })
  expect(calls[1]).toMatchObject({
    ...{ method: 'PATCH', path: expect.stringMatching(/\/codepools\/p\/status$/), signal },
    body: { metadata: { name: 'p', namespace: 'n', resourceVersion: '7' }, status: { level: 1 } },
  })
})

test('the inputs hash changes with everything a Job is built from, and nothing else', () => {
  if (template === undefined) throw new Error('there is no template')
  const of = (spec: Partial<CodePool['spec']>, storeName = 'shared') =>
    inputsHashOf({ ...pool, spec: { ...pool.spec, ...spec } }, { storeName, template })
  const changed = [
    of({}),
    of({ target: 6000 }),
    of({ codeSecret: { name: 't', key: 'secret' } }),
    of({ codeSecret: { name: 's', key: 'other' } }),
    of({ job: { activeDeadlineSeconds: 9 } }),
    of({}, 'other'),
  ]
  expect(new Set(changed).size).toBe(changed.length)
  expect(of({ lowWater: 1000, paused: true, headroomHours: 5 })).toBe(changed[0])
})
