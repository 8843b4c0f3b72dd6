// The controller of operator lists as the role opens it, and what it reports besides annotations.
import { expect, test } from '@jest/globals'
import { createFakeScheduler } from '../../../test/kit/fake-scheduler.ts'
import { waitFor } from '../../../test/kit/wait-for.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { KubeApi } from '../api.ts'
import { KubeError } from '../kube-error.ts'
import type { ObjectMeta } from '../objects.ts'
import { untilAborted } from '../scheduler.ts'
import { createListController, openListController } from './list-controller.ts'

type Call = Parameters<KubeApi['call']>[0]

const quiet = () => undefined
const quietLog = { debug: quiet, info: quiet, warn: quiet, error: quiet } as never
const metadata = { name: 'keys', namespace: 'n', uid: 'u', resourceVersion: '1' }

/** An API server with one pod and one Secret; `respond` can replace a response. */
function apiOf(respond: (call: Call) => Promise<unknown> | undefined = () => undefined) {
  const calls: Call[] = []
  const api: KubeApi = {
    call(call) {
      calls.push(call)
      const list = { items: [{ metadata }], metadata: { resourceVersion: '1' } }
      return respond(call) ?? Promise.resolve(list)
    },
    async *lines({ signal, onOpen }) {
      onOpen?.()
      yield* []
      await untilAborted(signal)
    },
  }
  return { api, calls }
}
const none = {
  ...{ API_KEYS_SECRET: undefined, BLOCKED_TARGETS_CONFIG_MAPS: undefined },
  LIST_PODS_SELECTOR: undefined,
}

/** A controller of the Secret `keys` on a fake clock. */
function createController(api: KubeApi) {
  const scheduler = createFakeScheduler()
  const infos: (readonly [object, string])[] = []
  const states: string[] = []
  const info = (fields: object, message = '') => infos.push([fields, message])
  const controller = createListController({
    ...{ api, namespace: 'n', podSelector: 'app=x', scheduler, random: () => 0 },
    objects: [{ plural: 'secrets', name: 'keys' }],
    ...{ metrics: createMetrics(), log: { debug: quiet, info, warn: quiet } as never },
    onState: (resource, failure) => states.push(`${resource} ${failure?.status ?? 'up'}`),
  })
  const stopping = new AbortController()
  const stop = async (leading: Promise<void>) => {
    stopping.abort()
    await scheduler.advance(0)
    await leading
  }
  return { controller, scheduler, infos, states, stopping, stop }
}

test('is not opened without a selector of pods', () => {
  const notes: string[] = []
  const health = { note: (resource: string) => notes.push(resource) } as never
  const process = { config: none, log: quietLog, metrics: createMetrics(), health }
  expect(openListController(process, { ...apiOf(), namespace: 'n' })).toBeUndefined()
})

test('the opened controller watches its objects as the leader, and reports reads', async () => {
  const notes: string[] = []
  const health = {
    note: (resource: string, state: string) => notes.push(`${resource} ${state}`),
  } as never
  const { api, calls } = apiOf()
  const config = { ...none, API_KEYS_SECRET: ['keys'], LIST_PODS_SELECTOR: 'app=x' }
  const process = { config, log: quietLog, metrics: createMetrics(), health }
  const controller = openListController(process, { api, namespace: 'n' })
  const stopping = new AbortController()
  await controller?.watch(stopping.signal)
  expect([controller?.isStuck(), calls, controller?.updateMetrics()]).toEqual([
    false,
    [],
    undefined,
  ])
  const leading = controller?.lead(stopping.signal)
  await waitFor('a patch', () => calls.some(({ method }) => method === 'PATCH'))
  expect(notes).toContain('secrets keys up')
  expect(controller?.isStuck()).toBe(false)
  stopping.abort()
  await leading
})

test('logs the value and the number of pods of the later annotations', async () => {
  const { api, calls } = apiOf()
  const { controller, scheduler, stopping, infos, states, stop } = createController(api)
  const leading = controller.lead(stopping.signal)
  await scheduler.advance(1000)
  expect([infos, states[0]]).toEqual([[], 'secrets keys up'])
  await scheduler.advance(60_000)
  const values = calls.flatMap(({ body }) => {
    const { metadata: patched } = (body ?? {}) as { metadata?: Pick<ObjectMeta, 'annotations'> }
    return Object.values(patched?.annotations ?? {})
  })
  expect(infos.map(([fields]) => fields)).toEqual(
    values.slice(1).map((annotation) => ({ annotation, pods: 1 })),
  )
  expect(infos).toHaveLength(2)
  await stop(leading)
})

test('is stuck once a watch hangs', async () => {
  const { api } = apiOf(({ path }) =>
    path.endsWith('/secrets') ? new Promise<never>(quiet) : undefined,
  )
  const { controller, scheduler, stopping } = createController(api)
  expect(controller.isStuck()).toBe(false)
  void controller.lead(stopping.signal)
  await scheduler.advance(300_000)
  expect(controller.isStuck()).toBe(false)
  await scheduler.advance(1)
  expect(controller.isStuck()).toBe(true)
  stopping.abort()
})

test('reports failures of a read with the name of the object', async () => {
  const error = new KubeError('no', { status: 403, reason: 'Forbidden' })
  const { api } = apiOf(() => Promise.reject(error))
  const { controller, scheduler, stopping, states, stop } = createController(api)
  const leading = controller.lead(stopping.signal)
  await scheduler.advance(0)
  expect(states).toEqual(['secrets keys 403'])
  await stop(leading)
})

test('a defect rejects', async () => {
  const { api } = apiOf(({ method }) =>
    method === 'PATCH' ? Promise.reject(new Error('defect')) : undefined,
  )
  const { controller, scheduler, stopping } = createController(api)
  const leading = expect(controller.lead(stopping.signal)).rejects.toThrow('defect')
  await scheduler.advance(200)
  await leading
  stopping.abort()
})
