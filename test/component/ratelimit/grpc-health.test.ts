// The gRPC health and reflection services, as Envoy, load balancers and grpcurl use them.
import { once } from 'node:events'
import { connect } from 'node:http2'
import { afterEach, describe, expect, test } from '@jest/globals'
import * as grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { runHttp2Tool } from '../../dependencies/http2-tools.ts'
import { startTestServer } from '../../kit/ratelimit/grpc-client.ts'
import { createHealthClient } from '../../kit/ratelimit/grpc-health-client.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
})

async function start() {
  const server = await startTestServer({}, { closeMsMax: 1000 })
  cleanups.push(() => server.close())
  return server
}

/** A client of the health service. */
function healthOf(port: number) {
  const client = createHealthClient(port)
  cleanups.push(client.close)
  return client
}

describe('health', () => {
  test('is returned for the service’s name and the empty name, and for no other', async () => {
    const server = await start()
    const { check } = healthOf(server.port)
    for (const isServing of [true, false, true]) {
      server.setServing(isServing)
      const status = isServing ? 'SERVING' : 'NOT_SERVING'
      expect([await check('ratelimit'), await check('')]).toEqual([status, status])
    }
    await expect(check('other')).rejects.toMatchObject({ code: grpc.status.NOT_FOUND })
  })

  test('is sent to watchers immediately, at each change, and at the shutdown', async () => {
    const server = await start()
    const { watch } = healthOf(server.port)
    const [named, empty, other, cancelled] = ['ratelimit', '', 'other', ''].map(watch)
    await waitFor('the first statuses', () =>
      [named, empty, other, cancelled].every((one) => one?.statuses.length === 1),
    )
    cancelled?.cancel()
    await cancelled?.completed
    server.setServing(false)
    server.setServing(false)
    server.setServing(true)
    await waitFor('the changes', () => named?.statuses.length === 3 && empty?.statuses.length === 3)
    const closed = server.close()
    server.setServing(true) // has no effect during the shutdown
    await withinDeadline('the shutdown with open watches', closed, 5000)
    const statuses = await Promise.all([named?.completed, empty?.completed, other?.completed])
    expect(statuses).toMatchObject([{ code: 0 }, { code: 0 }, { code: 0 }])
    const expected = ['SERVING', 'NOT_SERVING', 'SERVING', 'NOT_SERVING']
    expect([named?.statuses, empty?.statuses]).toEqual([expected, expected])
    expect(other?.statuses).toEqual(['SERVICE_UNKNOWN'])
    expect(cancelled?.statuses).toEqual(['SERVING'])
  })
})

describe('reflection', () => {
  const protos = new URL('../../../node_modules/@grpc/reflection/build/proto/', import.meta.url)
    .pathname

  test.each(['v1', 'v1alpha'])('%s lists the services and returns their files', async (version) => {
    const server = await start()
    const loaded = loadSync(`${protos}grpc/reflection/${version}/reflection.proto`)
    const definition = loaded[`grpc.reflection.${version}.ServerReflection`]
    const Reflection = grpc.makeGenericClientConstructor(
      definition as grpc.ServiceDefinition,
      'Reflection',
    )
    const client = new Reflection(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure())
    cleanups.push(() => {
      client.close()
    })
    const openStream = client['ServerReflectionInfo'] as () => grpc.ClientDuplexStream<
      object,
      object
    >
    const stream = openStream.call(client)
    const responses: object[] = []
    stream.on('data', (response: object) => responses.push(response))
    stream.write({ listServices: '*' })
    const symbol = 'envoy.service.ratelimit.v3.RateLimitService'
    stream.write({ fileContainingSymbol: symbol })
    stream.write({ fileContainingSymbol: 'nowhere.Nothing' })
    await waitFor('three responses', () => responses.length === 3)
    const service = [{ name: symbol }, { name: 'grpc.health.v1.Health' }]
    expect(responses[0]).toMatchObject({ listServicesResponse: { service } })
    const file = JSON.stringify(responses[1], (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
    )
    expect(file).toContain('fileDescriptorResponse')
    expect(responses[2]).toMatchObject({ errorResponse: { errorCode: grpc.status.NOT_FOUND } })
    stream.end()
    await once(stream, 'end')
  })

  test('supports list, describe and call of grpcurl', async () => {
    const server = await start()
    const grpcurl = async (...args: string[]) => {
      const at = `127.0.0.1:${String(server.port)}`
      const request = args[1] === undefined ? [] : ['-d', args[1]]
      const symbols = args[0] === undefined ? ['describe'] : [args[0]]
      return runHttp2Tool('grpcurl', ['-plaintext', ...request, at, ...symbols], 10_000)
    }
    expect(await grpcurl()).toMatchObject({
      ...{ code: 0, stderr: '' },
      stdout: expect.stringMatching(/rpc ShouldRateLimit \( \.envoy.*rpc List \( \.grpc/s),
    })
    const descriptors = [{ entries: [{ key: 'k', value: 'v' }], limit: { unit: 'DAY' } }]
    const request = JSON.stringify({ domain: 'edge', descriptors })
    const call = await grpcurl(
      'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
      request,
    )
    expect([call.stderr, call.stdout]).toEqual(['', expect.stringContaining('"rls": "ok"')])
    const health = await grpcurl('grpc.health.v1.Health/List', '{}') // its response has a map
    expect([health.stderr, health.stdout]).toEqual(['', expect.stringContaining('SERVING')])
  })

  test('stops reading from a client that does not read its responses', async () => {
    const server = await start()
    const session = connect(`http://127.0.0.1:${server.port}`)
    cleanups.push(() => {
      session.destroy()
    })
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    stream.on('error', () => undefined) // the clean-up destroys it
    const name = Buffer.from(`nowhere.${'x'.repeat(990)}`) // as file_containing_symbol
    const message = Buffer.concat([Buffer.from([34, 0xe6, 0x07]), name])
    const prefix = Buffer.from([0, 0, 0, 0, 0])
    prefix.writeUInt32BE(message.length, 1)
    const many = Buffer.concat(Array.from({ length: 8000 }, () => [prefix, message]).flat())
    stream.write(many)
    // The server has stopped reading if it reads nothing during several calls of another client.
    const { check } = healthOf(server.port)
    let [read, unchanged] = [-1, 0]
    await waitFor('the server to stop reading', async () => {
      await check('')
      const sent = session.socket.bytesWritten
      unchanged = sent === read ? unchanged + 1 : 0
      read = sent
      return unchanged === 25
    })
    expect(read).toBeGreaterThan(1000)
    expect(read).toBeLessThan(many.length / 2)
  })
})
