// The container image: every role runs in it unprivileged on a read-only root file system and loads
// only its own dependencies, and it contains a bill of materials. release.test.ts tests that its
// build is reproducible.
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { lstat, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { stop as stopEsbuild } from 'esbuild'
import { bundle } from '../../../k8s/image/bundle.ts'
import { type ImageRoot, openImage } from '../../dependencies/image-root.ts'
import { freePort } from '../../dependencies/free-ports.ts'
import { withinDeadline, waitFor } from '../../kit/wait-for.ts'

const BUILD_MS_MAX = 180_000
const TEST_MS_MAX = 180_000
const MEBIBYTE = 1024 * 1024
const APP_BYTES_MAX = 32 * MEBIBYTE
/** Of the heaps, stacks and buffers of an idle limiter, without the pages of its program. */
const IDLE_BYTES_MAX = 36 * MEBIBYTE

let image: ImageRoot

beforeAll(async () => {
  image = await openImage()
}, BUILD_MS_MAX)

afterAll(() => image.close())
// If esbuild's process runs when jest exits, Node.js can wait for it in an endless loop.
afterAll(stopEsbuild)

/** Runs a command of the image until it exits. */
async function runInside(args: readonly string[], env?: Record<string, string>) {
  const child = image.start(args, env)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
  }
  const [exitCode] = (await withinDeadline(args.join(' '), once(child, 'close'))) as [number | null]
  return { exitCode, output }
}

test('the image is small', () => {
  const { baseBytes, appBytes } = image.layerBytes
  const sizes = [baseBytes, appBytes].map((bytes) => (bytes / MEBIBYTE).toFixed(1))
  process.stdout.write(`image: base ${String(sizes[0])} MiB, app ${String(sizes[1])} MiB\n`)
  expect(appBytes).toBeLessThan(APP_BYTES_MAX)
})

test('the image contains no shell, and only /tmp is writable for its user', async () => {
  expect(image.config.User).toBe('65532:65532')
  const paths = await readdir(image.folder, { recursive: true })
  expect(paths.filter((path) => /(^|\/)(sh|bash|busybox|apt|dpkg)$/.test(path))).toEqual([
    'var/lib/dpkg',
  ])
  const writable: string[] = []
  for (const path of paths) {
    const stats = await lstat(join(image.folder, path))
    if (stats.uid !== 0 || (!stats.isSymbolicLink() && (stats.mode & 0o022) !== 0)) {
      writable.push(path)
    }
  }
  expect(writable).toEqual(['tmp'])
})

test(
  'curtail is on PATH, and passes its arguments and exit code',
  async () => {
    const path = image.config.Env?.find((one) => one.startsWith('PATH=')) ?? ''
    expect(path.slice('PATH='.length).split(':')).toContain('/bin')
    const dockerfile = await readFile(new URL('../../../Dockerfile', import.meta.url), 'utf8')
    expect(dockerfile).toContain(`${path} `)
    expect(dockerfile).toContain('COPY --chmod=755 k8s/image/bin/curtail /bin/curtail\n')
    const child = image.start(['link', 'shwo', 'a b'], {}, { command: ['/bin/curtail'] })
    let output = ''
    child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const [exitCode] = (await withinDeadline('the exit', once(child, 'close'))) as [number | null]
    expect([exitCode, output]).toEqual([
      2,
      expect.stringMatching(/^curtail: link requires .*"shwo"/),
    ])
  },
  TEST_MS_MAX,
)

test(
  'every role runs in the image, and prints its usage',
  async () => {
    const { output } = await runInside(['--help'])
    const roles = [...output.matchAll(/^ {2}([\w-]+) /gm)].map(([, role = '']) => role)
    expect(roles).toEqual(expect.arrayContaining(['standalone', 'create', 'redirect', 'ratelimit']))
    for (const role of roles) {
      const { exitCode, output: help } = await runInside([role, '--help'])
      expect([role, exitCode, help.split('\n')[0]]).toEqual([
        role,
        0,
        expect.stringContaining(`Usage: curtail ${role}`),
      ])
    }
  },
  TEST_MS_MAX,
)

test(
  'standalone in the image creates a link, redirects, and serves the pages and their assets',
  async () => {
    const [port, adminPort] = [await freePort(), await freePort()]
    const child = image.start(['standalone'], {
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      DATA_DIR: '/tmp/data',
    })
    let output = ''
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const exited = once(child, 'close')
    const base = `http://127.0.0.1:${port}`
    const isReady = () =>
      fetch(`http://127.0.0.1:${adminPort}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      )
    await waitFor('standalone to be ready', isReady)
    const created = await fetch(`${base}/v1/urls`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ long_url: 'https://example.com/' }),
    })
    expect([created.status, output]).toEqual([201, expect.not.stringContaining('Warning')])
    const { pathname } = new URL(created.headers.get('Location') ?? '')
    expect((await fetch(`${base}${pathname}`, { redirect: 'manual' })).status).toBe(302)
    for (const path of ['/', '/docs', '/favicon.ico', '/assets/page.css', '/openapi.json']) {
      expect([path, (await fetch(`${base}${path}`)).status]).toEqual([path, 200])
    }
    const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
    const rss = Number(/^process_resident_memory_bytes (\S+)/m.exec(metrics)?.[1])
    process.stdout.write(`standalone in the image: ${(rss / MEBIBYTE).toFixed(0)} MiB resident\n`)
    child.kill('SIGTERM')
    expect(await withinDeadline('standalone to exit', exited)).toEqual([0, null])
  },
  TEST_MS_MAX,
)

test(
  'an idle limiter in the image releases the memory of its start',
  async () => {
    const env: Record<string, string> = { RUNTIME_ROOT: '/app/src', RUNTIME_APPDIRECTORY: 'limits' }
    for (const name of ['PORT', 'DEBUG_PORT', 'GRPC_PORT', 'ADMIN_PORT']) {
      env[name] = String(await freePort())
    }
    env['REDIS_URL'] = `127.0.0.1:${await freePort()}` // no Redis is required for the start
    const child = image.start(['ratelimit'], env)
    let output = ''
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const exited = once(child, 'close')
    await waitFor('the limiter to be ready', () => output.includes('"msg":"ready"'))
    const anonymousBytes = async () => {
      const status = await readFile(`/proc/${String(child.pid)}/status`, 'utf8')
      return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
    }
    const isSmall = async () => (await anonymousBytes()) < IDLE_BYTES_MAX
    try {
      await waitFor('V8 to release the free pages', isSmall)
    } finally {
      child.kill('SIGTERM')
    }
    expect(await withinDeadline('the limiter to exit', exited)).toEqual([0, null])
  },
  TEST_MS_MAX,
)

test('the bill of materials lists Node.js, the base and every package, with licences', async () => {
  const json = await readFile(join(image.folder, 'app', 'sbom.json'), 'utf8')
  const sbom = JSON.parse(json) as {
    bomFormat: string
    components: { name: string; version: string; purl: string; licenses?: unknown }[]
  }
  expect(sbom.bomFormat).toBe('CycloneDX')
  const purls = sbom.components.map(({ purl }) => purl)
  expect(new Set(purls).size).toBe(purls.length)
  expect(purls).toContain(`pkg:github/nodejs/node@${process.version}`)
  for (const name of ['libc6', 'libstdc%2B%2B6', 'ca-certificates']) {
    expect(purls.filter((purl) => purl.startsWith(`pkg:deb/debian/${name}@`))).toHaveLength(1)
  }
  for (const name of ['express', 'ioredis', 'cassandra-driver', '%40grpc/grpc-js', 'zod']) {
    expect(purls.filter((purl) => purl.startsWith(`pkg:npm/${name}@`))).toHaveLength(1)
  }
  const licences = await readdir(join(image.folder, 'app', 'licences'))
  const npm = sbom.components.filter(({ purl }) => purl.startsWith('pkg:npm/'))
  const named = npm.map(({ name, version }) => `${name}@${version}`.split('/')[0] ?? '')
  expect(named.filter((name) => !licences.includes(name))).toEqual([])
})

const sqlite = /stores\/sqlite\//
const cassandra = /node_modules\/cassandra-driver\/|stores\/cassandra\//
const redis = /node_modules\/ioredis\/|stores\/redis\//
const express = /node_modules\/express\//
const kubernetes = /node_modules\/@kubernetes\/|src\/kube\//
const secret = /codes\/permutation|refill-settings/
const grpcJs = /node_modules\/(@grpc\/|protobufjs\/)/
/** Tables that no role reads. */
const unused = /node_modules\/(zod\/v4\/locales\/(?!en\.)|iconv-lite\/)/
/** Except the API package, which other packages import, and which has no effect alone. */
const telemetry = /node_modules\/@opentelemetry\/(?!api\/)/

/** Reports whether a process loads Node.js's HTTP client with WebSocket, which takes 12 MB. */
const undiciReporter = `data:text/javascript,${encodeURIComponent(`
process.on('exit', () => {
  const isLoaded = process.moduleLoadList.some((name) => name.endsWith('/undici'))
  process.stderr.write('loads undici: ' + isLoaded)
})`)}`

test(
  'each role loads only its own dependencies',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'curtail-bundle-'))
    try {
      const { metafile } = await bundle(folder)
      const loadedBy = (role: string) => {
        const entry = Object.entries(metafile.outputs).find(
          ([, { entryPoint }]) => entryPoint === `src/roles/${role}.ts`,
        )
        const loaded = new Set<string>()
        const load = (file: string) => {
          if (loaded.has(file)) return
          loaded.add(file)
          for (const { path, kind } of metafile.outputs[file]?.imports ?? []) {
            if (kind !== 'dynamic-import') load(path)
          }
        }
        load(entry?.[0] ?? '')
        return [...loaded].flatMap((file) => Object.keys(metafile.outputs[file]?.inputs ?? {}))
      }
      const notLoaded = {
        redirect: [sqlite, kubernetes, secret, grpcJs, telemetry],
        create: [sqlite, kubernetes, secret, grpcJs, telemetry],
        refill: [sqlite, kubernetes, express, redis, telemetry],
        migrate: [sqlite, kubernetes, express, redis, secret, telemetry],
        ratelimit: [sqlite, kubernetes, cassandra, secret, grpcJs, telemetry],
        standalone: [kubernetes, cassandra, redis, grpcJs, telemetry],
      }
      for (const [role, dependencies] of Object.entries(notLoaded)) {
        const loaded = loadedBy(role)
        expect(loaded).toContain(`src/roles/${role}.ts`)
        for (const pattern of [...dependencies, unused]) {
          expect(loaded.filter((file) => pattern.test(file))).toEqual([])
        }
      }
      for (const role of ['standalone', 'ratelimit']) {
        const args = ['--import', undiciReporter, join(folder, 'main.js'), role, '--help']
        const { stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
        expect([role, stderr]).toEqual([role, 'loads undici: false'])
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  },
  TEST_MS_MAX,
)
