// The listener of every serving role, in this process: it queues requests that arrive after the
// port opens and before the handlers are attached, and handles pipelined requests in order.
import express from 'express'
import { expect, test } from '@jest/globals'
import { listen } from '../../../src/http/serve.ts'
import { warn } from '../../kit/warn.ts'
import { headerOf, openConnection, requestBytes } from '../../kit/http/raw-http.ts'

const TEST_MS_MAX = 180_000

test(
  'the listener queues a request that arrives before its handlers are attached',
  async () => {
    const listener = await listen({ port: 0, host: '127.0.0.1', setting: 'PORT', onError: warn })
    const early = await openConnection(listener.port)
    early.send(requestBytes({ path: '/early' }))
    // Malformed HTTP is rejected without handlers; by then the earlier request has been read.
    const other = await openConnection(listener.port)
    try {
      other.send('nonsense\r\n\r\n')
      await other.closed
      const handled: unknown[] = []
      listener.attach({
        baseUrl: 'http://localhost',
        app: express(),
        fastPath(req, res) {
          handled.push(req.url)
          res.writeHead(204, { 'X-Fast-Path': 'yes' }).end()
          return true
        },
      })
      const response = await early.nextResponse()
      expect([response.status, headerOf(response, 'X-Fast-Path')]).toEqual([204, 'yes'])
      expect(handled).toEqual(['/early'])
    } finally {
      early.close()
      other.close()
      await listener.drain()
    }
  },
  TEST_MS_MAX,
)

test(
  'the listener reads few pipelined requests before it has handled the previous ones',
  async () => {
    const listener = await listen({ port: 0, host: '127.0.0.1', setting: 'PORT', onError: warn })
    const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
    let handled = 0
    listener.attach({
      baseUrl: 'http://localhost',
      app: express(),
      fastPath(_, res) {
        handled++
        if (handled === 1) void released.then(() => res.writeHead(204).end())
        else res.writeHead(204).end()
        return true
      },
    })
    const client = await openConnection(listener.port)
    try {
      const [requests, each] = [2000, 15_000]
      const headers = { Padding: 'p'.repeat(each) }
      for (let i = 0; i < requests; i++) client.send(requestBytes({ path: '/', headers }))
      let unsent = Infinity
      // The client can send until the buffers of the kernel and of the listener are full.
      while (client.socket.writableLength < unsent) {
        unsent = client.socket.writableLength
        await new Promise((resolve) => setTimeout(resolve, 200))
      }
      expect([handled, unsent > (requests * each) / 3]).toEqual([1, true])
      release(undefined)
      for (let i = 0; i < requests; i++) expect((await client.nextResponse()).status).toBe(204)
      expect(handled).toBe(requests)
    } finally {
      client.close()
      await listener.drain()
    }
  },
  TEST_MS_MAX,
)

test(
  'the listener handles pipelined requests one by one, each in its own turn of the event loop',
  async () => {
    const listener = await listen({ port: 0, host: '127.0.0.1', setting: 'PORT', onError: warn })
    const { promise: released, resolve: release } = Promise.withResolvers<undefined>()
    const events: string[] = []
    listener.attach({
      baseUrl: 'http://localhost',
      app: express(),
      fastPath(req, res) {
        const path = req.url ?? ''
        events.push(path)
        setImmediate(() => events.push(`turn after ${path}`))
        if (path === '/1') void released.then(() => res.writeHead(204).end())
        else res.writeHead(204).end()
        return true
      },
    })
    const client = await openConnection(listener.port)
    const other = await openConnection(listener.port)
    try {
      client.send(Buffer.concat(['/1', '/2', '/3'].map((path) => requestBytes({ path }))))
      // After this response, the requests sent before it have been parsed.
      expect((await other.exchange({ path: '/other' })).status).toBe(204)
      expect(events.filter((event) => /^\/\d/.test(event))).toEqual(['/1'])
      release(undefined)
      for (let i = 0; i < 3; i += 1) expect((await client.nextResponse()).status).toBe(204)
      const own = events.filter((event) => !event.includes('/other'))
      expect(own.slice(0, 5)).toEqual(['/1', 'turn after /1', '/2', 'turn after /2', '/3'])
    } finally {
      client.close()
      other.close()
      await listener.drain()
    }
  },
  TEST_MS_MAX,
)
