// The gRPC listener on a port and a unix socket: responses, errors, connection age and shutdown.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type ClientHttp2Session } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import * as grpc from '@grpc/grpc-js'
import { LimitRequestError, type Verdict } from '../../../src/limits/verdict.ts'
import { createTestClient, admitAll, startTestServer } from '../../kit/ratelimit/grpc-client.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

const request = { domain: 'edge', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] }

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
})

async function start(...given: Parameters<typeof startTestServer>) {
  const server = await startTestServer(...given)
  cleanups.push(() => server.close())
  return server
}

function clientOf(target: string | number, options: grpc.ClientOptions = {}) {
  const address = typeof target === 'number' ? `127.0.0.1:${target}` : target
  const client = createTestClient(address, undefined, options)
  cleanups.push(() => {
    client.close()
  })
  return client
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'curtail-grpc-'))
  cleanups.push(() => {
    rmSync(path, { recursive: true })
  })
  return path
}

describe('a call', () => {
  test('is decided and gets a response in Envoy’s messages', async () => {
    const server = await start()
    const response = await clientOf(server.port).call(request)
    expect(response).toMatchObject({
      overallCode: 'OK',
      statuses: [
        {
          code: 'OK',
          currentLimit: { requestsPerUnit: 20, unit: 'MINUTE' },
          limitRemaining: 19,
          durationUntilReset: { seconds: '60' },
        },
      ],
      responseHeadersToAdd: [{ key: 'X-RateLimit-Limit', value: '20' }],
      dynamicMetadata: { fields: { rls: { stringValue: 'ok' } } },
    })
    expect(server.calls).toMatchObject([{ code: 'OK' }])
    expect(server.calls[0]?.seconds).toBeGreaterThan(0)
  })

  test('that cannot be decided gets the reason, with invalid characters replaced', async () => {
    const decide = () =>
      Promise.reject(new LimitRequestError(`no domain “\ud800é\n%” here ${'x'.repeat(5000)}`))
    const server = await start({}, { decide })
    const failed = clientOf(server.port).call(request)
    await expect(failed).rejects.toMatchObject({
      code: grpc.status.INVALID_ARGUMENT,
      details: expect.stringMatching(/^no domain “\ufffdé\n%” here x{900,}$/),
    })
    expect(server.calls).toMatchObject([{ code: 'INVALID_ARGUMENT' }])
    expect(server.defects).toEqual([])
  })

  test.each([
    ['a rejection', () => Promise.reject(new Error('redis://secret@host'))],
    [
      'a throw',
      () => {
        throw new Error('redis://secret@host')
      },
    ],
    ['a verdict that cannot be written', () => Promise.resolve({} as Verdict)],
  ])('with a defect, %s, gets INTERNAL without the error’s message', async (_, decide) => {
    const server = await start({}, { decide })
    await expect(clientOf(server.port).call(request)).rejects.toMatchObject({
      code: grpc.status.INTERNAL,
      details: 'the limiter cannot decide the call',
    })
    expect(server.defects).toHaveLength(1)
    expect(server.calls).toMatchObject([{ code: 'INTERNAL' }])
  })

  test('completes at its client’s deadline, even without a decision', async () => {
    const server = await start({}, { decide: () => new Promise(() => undefined), closeMsMax: 0 })
    const timedOut = clientOf(server.port).call(request, { deadline: Date.now() + 50 })
    await expect(timedOut).rejects.toMatchObject({ code: grpc.status.DEADLINE_EXCEEDED })
  })
})

describe('a unix socket', () => {
  test('is served instead of the port, and deleted at the shutdown', async () => {
    const path = join(folder(), 'rls.sock')
    const server = await startTestServer({ GRPC_UDS: path })
    expect(server.port).toBe(0)
    expect(await clientOf(`unix:${path}`).call(request)).toMatchObject({ overallCode: 'OK' })
    await server.close()
    expect(existsSync(path)).toBe(false)
  })

  test('of a dead process is reused', async () => {
    const path = join(folder(), 'rls.sock')
    const listening = `listen(${JSON.stringify(path)}, () => console.log())`
    const script = `require('net').createServer().${listening}`
    const dead = spawn(process.execPath, ['-e', script])
    await once(dead.stdout, 'data')
    dead.kill('SIGKILL')
    await once(dead, 'exit')
    expect(existsSync(path)).toBe(true)
    await start({ GRPC_UDS: path })
    expect(await clientOf(`unix:${path}`).call(request)).toMatchObject({ overallCode: 'OK' })
  })

  test('that another server uses is not taken over', async () => {
    const path = join(folder(), 'rls.sock')
    await start({ GRPC_UDS: path })
    await expect(startTestServer({ GRPC_UDS: path })).rejects.toThrow(
      `${path} is in use: stop the process that serves it, or change GRPC_UDS`,
    )
    expect(await clientOf(`unix:${path}`).call(request)).toMatchObject({ overallCode: 'OK' })
  })

  test('of a server that accepts no connections at the moment is not taken over', async () => {
    const path = join(folder(), 'rls.sock')
    const listening = `listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => console.log())`
    const server = spawn(process.execPath, ['-e', `require('net').createServer().${listening}`])
    cleanups.push(() => server.kill('SIGKILL'))
    await once(server.stdout, 'data')
    server.kill('SIGSTOP')
    const waiting = Array.from({ length: 4 }, () => connectSocket(path))
    for (const socket of waiting) socket.on('error', () => undefined)
    cleanups.push(() => waiting.map((socket) => socket.destroy()))
    await expect(startTestServer({ GRPC_UDS: path })).rejects.toThrow(`${path} is in use`)
    expect(existsSync(path)).toBe(true)
  })

  test('never replaces another file', async () => {
    const path = join(folder(), 'precious')
    writeFileSync(path, 'kept')
    await expect(startTestServer({ GRPC_UDS: path })).rejects.toThrow(
      `GRPC_UDS must name a unix socket, or a path that does not exist: current value is ${path}`,
    )
    expect(existsSync(path)).toBe(true)
  })
})

test('a port in use fails with one error message', async () => {
  const { port } = await start()
  await expect(startTestServer({ GRPC_PORT: String(port) })).rejects.toThrow(
    `Cannot serve gRPC on 127.0.0.1 port ${port}: EADDRINUSE; change GRPC_HOST and GRPC_PORT`,
  )
})

describe('a connection', () => {
  async function sessionOf(port: number): Promise<ClientHttp2Session> {
    const session = connect(`http://127.0.0.1:${port}`)
    cleanups.push(() => {
      session.destroy()
    })
    await once(session, 'connect')
    return session
  }

  test('gets GOAWAY at its maximum age, and its client reconnects', async () => {
    const server = await start({ GRPC_MAX_CONNECTION_AGE: '300ms' })
    const session = await sessionOf(server.port)
    const [code] = (await withinDeadline('GOAWAY', once(session, 'goaway'))) as [number]
    expect(code).toBe(0)
    await withinDeadline('the close', once(session, 'close'))
    const client = clientOf(server.port)
    const startMs = performance.now()
    while (performance.now() - startMs < 1000) await client.call(request)
    expect(server.calls.every(({ code }) => code === 'OK')).toBe(true)
  })

  test('is destroyed after its grace period, even with a call in flight', async () => {
    const env = { GRPC_MAX_CONNECTION_AGE: '100ms', GRPC_MAX_CONNECTION_AGE_GRACE: '100ms' }
    const server = await start(env, { decide: () => new Promise(() => undefined), closeMsMax: 0 })
    const aborted = clientOf(server.port, { 'grpc.enable_retries': 0 }).call(request)
    await expect(aborted).rejects.toMatchObject({ code: grpc.status.UNAVAILABLE })
  })

  test('has no maximum age with a setting of 0', async () => {
    const server = await start({ GRPC_MAX_CONNECTION_AGE: '0' })
    const session = await sessionOf(server.port)
    const goaway = once(session, 'goaway')
    const first = await Promise.race([goaway, clientOf(server.port).call(request)])
    expect(first).toMatchObject({ overallCode: 'OK' })
  })
})

describe('the shutdown', () => {
  test('completes calls in flight, and accepts no new ones', async () => {
    let complete = () => undefined as unknown
    let isCalled = false
    const server = await startTestServer(
      {},
      {
        decide: async (limitRequest) => {
          isCalled = true
          await new Promise<void>((resolve) => (complete = resolve))
          return admitAll(limitRequest)
        },
      },
    )
    const client = clientOf(server.port)
    const response = client.call(request)
    await waitFor('the call', () => isCalled)
    const closed = server.close()
    await expect(clientOf(server.port).call(request)).rejects.toMatchObject({
      code: grpc.status.UNAVAILABLE,
    })
    complete()
    expect(await response).toMatchObject({ overallCode: 'OK' })
    await closed
    expect(server.errors).toEqual([])
  })

  test('aborts the calls in flight at its deadline, and reports them', async () => {
    let isCalled = false
    const decide = () => {
      isCalled = true
      return new Promise<never>(() => undefined)
    }
    const server = await startTestServer({}, { decide, closeMsMax: 100 })
    const aborted = clientOf(server.port).call(request)
    const idle = connect(`http://127.0.0.1:${server.port}`)
    const rejected = expect(aborted).rejects.toMatchObject({ code: grpc.status.UNAVAILABLE })
    await once(idle, 'connect')
    await waitFor('the call', () => isCalled)
    const idleClosed = once(idle, 'close')
    await withinDeadline('the shutdown', server.close(), 5000)
    await Promise.all([rejected, idleClosed])
    expect(server.errors).toMatchObject([
      { message: 'calls or TLS handshakes were still in flight at the deadline' },
    ])
  })
})
