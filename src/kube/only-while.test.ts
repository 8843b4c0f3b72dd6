// The fence around the API server: reads pass always, writes only while the condition holds.
import { expect, test } from '@jest/globals'
import type { KubeApi } from './api.ts'
import { KubeError } from './kube-error.ts'
import { onlyWhile } from './only-while.ts'

function fenced() {
  const sent: string[] = []
  const api: KubeApi = {
    call({ method }) {
      sent.push(method)
      return Promise.resolve({ done: method })
    },
    async *lines({ path }) {
      yield await Promise.resolve(path)
    },
  }
  const state = { holds: false }
  return { api: onlyWhile(() => state.holds, api), sent, state }
}

test.each(['POST', 'PUT', 'PATCH', 'DELETE'] as const)(
  'a %s is sent only while the condition holds, which is checked at each call',
  async (method) => {
    const { api, sent, state } = fenced()
    const write = () => api.call({ method, path: '/x' })
    const refusal = { status: 0, reason: 'NotLeading' }
    await expect(write()).rejects.toBeInstanceOf(KubeError)
    await expect(write()).rejects.toMatchObject(refusal)
    expect(sent).toEqual([])
    state.holds = true
    expect(await write()).toEqual({ done: method })
    state.holds = false
    await expect(write()).rejects.toMatchObject(refusal)
    expect(sent).toEqual([method])
  },
)

test('reads and watches pass while the condition does not hold', async () => {
  const { api, sent } = fenced()
  expect(await api.call({ method: 'GET', path: '/x' })).toEqual({ done: 'GET' })
  const { signal } = new AbortController()
  const lines = api.lines({ path: '/watch', query: {}, idleMsMax: 1, signal })
  expect([(await lines.next()).value, sent]).toEqual(['/watch', ['GET']])
})
