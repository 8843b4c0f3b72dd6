// Health and reflection over gRPC, as Envoy, load balancers and grpcurl ask for them.
import { once } from 'node:events'
import { connect } from 'node:http2'
import { afterEach, describe, expect, test } from '@jest/globals'
import * as grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import { runHttp2Tool } from '../parts/http2-tools.ts'
import { startTestServer } from './grpc-client.ts'
import { createHealthClient } from './grpc-health-client.ts'
import { inTime, waitFor } from './wait-for.ts'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function start() {
  const server = await startTestServer({}, { closeMsMax: 1000 })
  ends.push(() => server.close())
  return server
}

/** A client of the health service. */
function healthOf(port: number) {
  const client = createHealthClient(port)
  ends.push(client.close)
  return client
}

describe('health', () => {
  test('is the service’s under its own name and the empty one, and no other’s', async () => {
    const server = await start()
    const { check } = healthOf(server.port)
    for (const isServing of [true, false, true]) {
      server.setServing(isServing)
      const told = isServing ? 'SERVING' : 'NOT_SERVING'
      expect([await check('ratelimit'), await check('')]).toEqual([told, told])
    }
    await expect(check('other')).rejects.toMatchObject({ code: grpc.status.NOT_FOUND })
  })

  test('is told to who watches: at once, at each change, and that it ends', async () => {
    const server = await start()
    const { watch } = healthOf(server.port)
    const [known, whole, other, gone] = ['ratelimit', '', 'other', ''].map(watch)
    await waitFor('the first answers', () =>
      [known, whole, other, gone].every((one) => one?.seen.length === 1),
    )
    gone?.cancel()
    await gone?.ended
    server.setServing(false)
    server.setServing(false)
    server.setServing(true)
    await waitFor('the changes', () => known?.seen.length === 3 && whole?.seen.length === 3)
    const closed = server.close()
    server.setServing(true) // too late
    await inTime('an end though calls watch', closed, 5000)
    const statuses = await Promise.all([known?.ended, whole?.ended, other?.ended])
    expect(statuses).toMatchObject([{ code: 0 }, { code: 0 }, { code: 0 }])
    const seen = ['SERVING', 'NOT_SERVING', 'SERVING', 'NOT_SERVING']
    expect([known?.seen, whole?.seen]).toEqual([seen, seen])
    expect(other?.seen).toEqual(['SERVICE_UNKNOWN'])
    expect(gone?.seen).toEqual(['SERVING'])
  })
})

describe('reflection', () => {
  const protos = new URL('../../node_modules/@grpc/reflection/build/proto/', import.meta.url)
    .pathname

  test.each(['v1', 'v1alpha'])('%s lists the services and gives their files', async (version) => {
    const server = await start()
    const loaded = loadSync(`${protos}grpc/reflection/${version}/reflection.proto`)
    const definition = loaded[`grpc.reflection.${version}.ServerReflection`]
    const Reflection = grpc.makeGenericClientConstructor(
      definition as grpc.ServiceDefinition,
      'Reflection',
    )
    const client = new Reflection(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure())
    ends.push(() => {
      client.close()
    })
    const begin = client['ServerReflectionInfo'] as () => grpc.ClientDuplexStream<object, object>
    const stream = begin.call(client)
    const answers: object[] = []
    stream.on('data', (answer: object) => answers.push(answer))
    stream.write({ listServices: '*' })
    const symbol = 'envoy.service.ratelimit.v3.RateLimitService'
    stream.write({ fileContainingSymbol: symbol })
    stream.write({ fileContainingSymbol: 'nowhere.Nothing' })
    await waitFor('three answers', () => answers.length === 3)
    const service = [{ name: symbol }, { name: 'grpc.health.v1.Health' }]
    expect(answers[0]).toMatchObject({ listServicesResponse: { service } })
    const text = JSON.stringify(answers[1], (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
    )
    expect(text).toContain('fileDescriptorResponse')
    expect(answers[2]).toMatchObject({ errorResponse: { errorCode: grpc.status.NOT_FOUND } })
    stream.end()
    await once(stream, 'end')
  })

  test('lets grpcurl list, describe and call what is served', async () => {
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
    const health = await grpcurl('grpc.health.v1.Health/List', '{}') // its answer has a map
    expect([health.stderr, health.stdout]).toEqual(['', expect.stringContaining('SERVING')])
  })

  test('asks a client to wait that does not read its answers', async () => {
    const server = await start()
    const session = connect(`http://127.0.0.1:${server.port}`)
    ends.push(() => {
      session.destroy()
    })
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    stream.on('error', () => undefined) // it is cut at the end of the test
    const name = Buffer.from(`nowhere.${'x'.repeat(990)}`) // as file_containing_symbol
    const asked = Buffer.concat([Buffer.from([34, 0xe6, 0x07]), name])
    const head = Buffer.from([0, 0, 0, 0, 0])
    head.writeUInt32BE(asked.length, 1)
    const many = Buffer.concat(Array.from({ length: 8000 }, () => [head, asked]).flat())
    stream.write(many)
    // Takes no more once as much has been taken as after several calls of another client before.
    const { check } = healthOf(server.port)
    let [taken, since] = [-1, 0]
    await waitFor('it to take no more', async () => {
      await check('')
      const sent = session.socket.bytesWritten
      since = sent === taken ? since + 1 : 0
      taken = sent
      return since === 25
    })
    expect(taken).toBeGreaterThan(1000)
    expect(taken).toBeLessThan(many.length / 2)
  })
})
