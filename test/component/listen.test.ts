// The listener that every role serves with, in this process: requests that come between the
// opening of its port and the attaching of what answers them are kept.
import express from 'express'
import { expect, test } from '@jest/globals'
import { listen } from '../../src/http/serve.ts'
import { warn } from '../parts/warn.ts'
import { headerOf, openConnection, requestBytes } from './raw-http.ts'

const TEST_MS_MAX = 20_000

test(
  'a request that comes before the handlers is answered by them',
  async () => {
    const listener = await listen({ port: 0, host: '127.0.0.1', setting: 'PORT', onError: warn })
    const early = await openConnection(listener.port)
    early.send(requestBytes({ path: '/early' }))
    // What is no request is refused without handlers: once it is, the one before it has been read.
    const other = await openConnection(listener.port)
    try {
      other.send('nonsense\r\n\r\n')
      await other.ended
      const answered: unknown[] = []
      listener.attach({
        baseUrl: 'http://localhost',
        app: express(),
        fastPath(req, res) {
          answered.push(req.url)
          res.writeHead(204, { 'X-Lane': 'yes' }).end()
          return true
        },
      })
      const answer = await early.answer()
      expect([answer.status, headerOf(answer, 'X-Lane')]).toEqual([204, 'yes'])
      expect(answered).toEqual(['/early'])
    } finally {
      early.close()
      other.close()
      await listener.drain()
    }
  },
  TEST_MS_MAX,
)
