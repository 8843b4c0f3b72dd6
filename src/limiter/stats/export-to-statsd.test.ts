// The export of the limiter's statistics to a statsd server, by its settings, until it is stopped.
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, test } from '@jest/globals'
import { waitFor } from '../../../test/kit/wait-for.ts'
import { exportToStatsd } from './export-to-statsd.ts'
import { RuleStats } from './rule-stats.ts'

test('statistics are sent with the tags at each interval, and when the export stops', async () => {
  let received = ''
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      received += chunk
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const stats = new RuleStats({ nearLimitRatio: 0.8 })
  stats.service.redisError = 2
  const logged: unknown[] = []
  const log = (...line: unknown[]) => void logged.push(line)
  const stop = exportToStatsd({
    config: {
      STATSD_HOST: '127.0.0.1',
      STATSD_PORT: (server.address() as AddressInfo).port,
      STATS_FLUSH_INTERVAL: 10,
      EXTRA_TAGS: new Map([['zone', 'a']]),
    },
    stats,
    log: { info: log, warn: log } as never,
  })
  const name = 'ratelimit.service.call.should_rate_limit.redis_error.__zone=a'
  await waitFor('the first count', () => received.includes(`${name}:2|c\n`))
  stats.service.redisError = 5
  await waitFor('the second count', () => received.includes(`${name}:3|c\n`))
  stats.service.redisError = 9
  await stop()
  await waitFor('the last count', () => received.includes(`${name}:4|c\n`))
  await waitFor('the close', () => sockets.every((socket) => socket.closed))
  expect([sockets.length, logged]).toEqual([1, []])
  server.close()
})
