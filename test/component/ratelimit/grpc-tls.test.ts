// The gRPC listener over TLS: the clients that it accepts, and the renewal of its certificate while
// connections are open.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import * as grpc from '@grpc/grpc-js'
import { watchTlsFiles } from '../../../src/process/tls-files.ts'
import {
  createAuthority,
  type Issued,
  serialNumberOf,
} from '../../kit/ratelimit/grpc-certificates.ts'
import {
  createTestClient,
  startTestServer,
  type TestServer,
} from '../../kit/ratelimit/grpc-client.ts'
import { waitFor } from '../../kit/wait-for.ts'

const request = { domain: 'edge', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] }
const authority = createAuthority('servers of the test')
const clients = createAuthority('clients of the test')

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
})

/** A directory with a certificate, and the settings with its paths. */
function filesOf(issued: Issued, within = '') {
  const root = mkdtempSync(join(tmpdir(), 'curtail-tls-'))
  cleanups.push(() => {
    rmSync(root, { recursive: true })
  })
  const path = join(root, within)
  mkdirSync(path, { recursive: true })
  write(path, issued)
  const env = {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: join(root, 'tls.crt'),
    GRPC_SERVER_TLS_KEY: join(root, 'tls.key'),
  }
  return { root, env }
}

function write(path: string, { cert, key }: Issued): void {
  writeFileSync(join(path, 'tls.crt'), cert)
  writeFileSync(join(path, 'tls.key'), key)
}

async function start(env: Record<string, string>): Promise<TestServer> {
  const server = await startTestServer(env)
  cleanups.push(() => server.close())
  return server
}

function clientOf(port: number, own?: Issued) {
  const credentials = grpc.credentials.createSsl(
    Buffer.from(authority.cert),
    own === undefined ? null : Buffer.from(own.key),
    own === undefined ? null : Buffer.from(own.cert),
  )
  const client = createTestClient(`127.0.0.1:${port}`, credentials, {
    'grpc.ssl_target_name_override': 'localhost',
    'grpc.enable_retries': 0,
  })
  cleanups.push(() => {
    client.close()
  })
  return client
}

async function sessionTo(port: number): Promise<ClientHttp2Session> {
  const options = { ca: authority.cert, servername: 'localhost' }
  const session = connectHttp2(`https://127.0.0.1:${port}`, options)
  cleanups.push(() => {
    session.destroy()
  })
  await once(session, 'connect')
  return session
}

const unavailable = { code: grpc.status.UNAVAILABLE }

describe('TLS', () => {
  test('is required of every client', async () => {
    const server = await start(filesOf(authority.issue(['localhost'])).env)
    expect(await clientOf(server.port).call(request)).toMatchObject({ overallCode: 'OK' })
    const plain = createTestClient(`127.0.0.1:${server.port}`)
    cleanups.push(() => {
      plain.close()
    })
    await expect(plain.call(request)).rejects.toMatchObject(unavailable)
    expect(await clientOf(server.port).call(request)).toMatchObject({ overallCode: 'OK' })
  })

  test('requires its files; each mistake has its error message', async () => {
    const { env, root } = filesOf(authority.issue(['localhost']))
    const without = { ...env, GRPC_SERVER_TLS_KEY: '' }
    await expect(startTestServer(without)).rejects.toThrow(
      'GRPC_SERVER_USE_TLS requires GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY: set both',
    )
    const absent = { ...env, GRPC_SERVER_TLS_KEY: join(root, 'absent') }
    await expect(startTestServer(absent)).rejects.toThrow(/^Cannot read .*absent: /)
    writeFileSync(join(root, 'tls.key'), authority.issue(['localhost']).key)
    await expect(startTestServer(env)).rejects.toThrow('are not a certificate and its key: ')
    const san = { ...env, GRPC_CLIENT_TLS_SAN: 'envoy.test' }
    await expect(startTestServer(san)).rejects.toThrow('GRPC_CLIENT_TLS_SAN requires')
    write(root, authority.issue(['localhost']))
    writeFileSync(join(root, 'ca.crt'), 'nothing')
    const empty = { ...env, GRPC_CLIENT_TLS_CACERT: join(root, 'ca.crt') }
    await expect(startTestServer(empty)).rejects.toThrow('ca.crt contains no valid certificates: ')
  })
})

describe('clients', () => {
  const startMutual = async (more: Record<string, string> = {}) => {
    const { env, root } = filesOf(authority.issue(['localhost']))
    writeFileSync(join(root, 'ca.crt'), clients.cert)
    return start({ ...env, GRPC_CLIENT_TLS_CACERT: join(root, 'ca.crt'), ...more })
  }

  test('are accepted only with a certificate of the configured CA', async () => {
    const { port } = await startMutual()
    const own = clients.issue(['envoy.test'])
    expect(await clientOf(port, own).call(request)).toMatchObject({ overallCode: 'OK' })
    await expect(clientOf(port).call(request)).rejects.toMatchObject(unavailable)
    const foreign = authority.issue(['envoy.test'])
    await expect(clientOf(port, foreign).call(request)).rejects.toMatchObject(unavailable)
  })

  test('must have the configured name among their alternative names', async () => {
    const { port } = await startMutual({ GRPC_CLIENT_TLS_SAN: 'envoy.edge.test' })
    const named = clients.issue(['other.test', 'envoy.edge.test'])
    expect(await clientOf(port, named).call(request)).toMatchObject({ overallCode: 'OK' })
    const wild = clients.issue(['*.edge.test'])
    expect(await clientOf(port, wild).call(request)).toMatchObject({ overallCode: 'OK' })
    const other = clients.issue(['envoy.edge.test.example'])
    await expect(clientOf(port, other).call(request)).rejects.toMatchObject(unavailable)
  })
})

describe('a renewed certificate', () => {
  test('is used for new connections, while existing ones stay open', async () => {
    const { env, root } = filesOf(authority.issue(['localhost']))
    const server = await start(env)
    const old = await sessionTo(server.port)
    for (let renewals = 0; renewals < 2; renewals += 1) {
      const before = await serialNumberOf(server.port, authority)
      write(root, authority.issue(['localhost']))
      await waitFor(
        'the new certificate',
        async () => (await serialNumberOf(server.port, authority)) !== before,
      )
    }
    await new Promise<void>((resolve, reject) => {
      old.ping((error) => {
        if (error === null) resolve()
        else reject(error)
      })
    })
    expect([old.closed, old.destroyed]).toEqual([false, false])
    expect(await clientOf(server.port).call(request)).toMatchObject({ overallCode: 'OK' })
    expect(server.errors).toEqual([])
  })

  test('is loaded when a mounted Secret is swapped', async () => {
    const { env, root } = filesOf(authority.issue(['localhost']), '..v1')
    symlinkSync('..v1', join(root, '..data'))
    for (const name of ['tls.crt', 'tls.key']) symlinkSync(`..data/${name}`, join(root, name))
    const server = await start(env)
    for (const version of [2, 3]) {
      const before = await serialNumberOf(server.port, authority)
      mkdirSync(join(root, `..v${version}`))
      write(join(root, `..v${version}`), authority.issue(['localhost']))
      symlinkSync(`..v${version}`, join(root, '..data_tmp'))
      renameSync(join(root, '..data_tmp'), join(root, '..data'))
      rmSync(join(root, `..v${version - 1}`), { recursive: true })
      await waitFor(
        'the new certificate',
        async () => (await serialNumberOf(server.port, authority)) !== before,
      )
    }
    expect(server.errors).toEqual([])
  })

  test('that changes during a read is re-read, and never reported partially', async () => {
    const [first, second] = [authority.issue(['localhost']), authority.issue(['localhost'])]
    const { env, root } = filesOf(first)
    const [certificate, key] = [env.GRPC_SERVER_TLS_CERT, env.GRPC_SERVER_TLS_KEY]
    const events: string[] = []
    const watching = watchTlsFiles({
      files: { certificate, key, authorities: undefined },
      onChange: ({ cert }) => events.push(String(cert)),
      onError: (error) => events.push(String(error)),
    })
    cleanups.push(() => watching.stop())
    await waitFor('the first certificate', () => events.length === 1)
    rmSync(certificate)
    execFileSync('mkfifo', [certificate]) // a read blocks until the test closes it
    const half = await open(certificate, 'w')
    await half.write('half a')
    writeFileSync(join(root, 'next.crt'), second.cert)
    renameSync(join(root, 'next.crt'), certificate)
    writeFileSync(key, second.key)
    await half.close()
    await waitFor('the second certificate', () => events.length > 1)
    expect(events).toEqual([first.cert, second.cert])
  })

  test('that is invalid is reported once, and the previous one stays in use', async () => {
    const { env, root } = filesOf(authority.issue(['localhost']))
    const server = await start(env)
    const before = await serialNumberOf(server.port, authority)
    const bad = [
      () => {
        writeFileSync(join(root, 'tls.crt'), 'half a')
      },
      () => {
        write(root, { ...authority.issue(['localhost']), key: authority.issue(['x']).key })
      },
      () => {
        rmSync(join(root, 'tls.key'))
      },
    ]
    for (const [at, invalidate] of bad.entries()) {
      invalidate()
      await waitFor('the report', () => server.errors.length === at + 1)
      expect(await serialNumberOf(server.port, authority)).toBe(before)
      expect(await clientOf(server.port).call(request)).toMatchObject({ overallCode: 'OK' })
    }
    expect(server.errors).toMatchObject([
      { message: expect.stringContaining('are not a certificate and its key') },
      { message: expect.stringContaining('are not a certificate and its key') },
      { message: expect.stringMatching(/^Cannot read .*tls\.key: /) },
    ])
    write(root, authority.issue(['localhost']))
    await waitFor(
      'the new certificate',
      async () => (await serialNumberOf(server.port, authority)) !== before,
    )
    expect(server.errors).toHaveLength(3)
  })
})
