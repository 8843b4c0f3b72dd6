// The fence around the API server: it admits every read, and a write if `mayWrite` returns true.
import { expect, test } from '@jest/globals'
import type { KubeApi } from './api.ts'
import { KubeError } from './kube-error.ts'
import { fence } from './fence.ts'

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
  const state = { mayWrite: false }
  return { api: fence(() => state.mayWrite, api), sent, state }
}

test.each(['POST', 'PUT', 'PATCH', 'DELETE'] as const)(
  'a %s is sent only if mayWrite, checked at each call, returns true',
  async (method) => {
    const { api, sent, state } = fenced()
    const write = () => api.call({ method, path: '/x' })
    const rejection = { status: 0, reason: 'NotLeading' }
    await expect(write()).rejects.toBeInstanceOf(KubeError)
    await expect(write()).rejects.toMatchObject(rejection)
    expect(sent).toEqual([])
    state.mayWrite = true
    expect(await write()).toEqual({ done: method })
    state.mayWrite = false
    await expect(write()).rejects.toMatchObject(rejection)
    expect(sent).toEqual([method])
  },
)

test('reads and watches pass while writes are rejected', async () => {
  const { api, sent } = fenced()
  expect(await api.call({ method: 'GET', path: '/x' })).toEqual({ done: 'GET' })
  const { signal } = new AbortController()
  const lines = api.lines({ path: '/watch', query: {}, idleMsMax: 1, signal })
  expect([(await lines.next()).value, sent]).toEqual(['/watch', ['GET']])
})
