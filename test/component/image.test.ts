// The image as a container sees it: built twice it is the same, every role runs in it as nobody on
// a read-only root, each loads little, and it says what it is made of.
import { once } from 'node:events'
import { createHash } from 'node:crypto'
import { lstat, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { buildImage } from '../../k8s/image/build.ts'
import { bundle } from '../../k8s/image/bundle.ts'
import { type ImageRoot, openImage } from '../parts/image-root.ts'
import { freePort } from '../parts/free-ports.ts'
import { inTime, waitFor } from './wait-for.ts'

const BUILD_MS_MAX = 180_000
const TEST_MS_MAX = 90_000
const MEBIBYTE = 1024 * 1024
const APP_BYTES_MAX = 32 * MEBIBYTE

let image: ImageRoot

beforeAll(async () => {
  image = await openImage()
}, BUILD_MS_MAX)

afterAll(() => image.close())

/** Runs a command of the image to its end. */
async function runInside(args: readonly string[], env?: Record<string, string>) {
  const child = image.start(args, env)
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  }
  const [code] = (await inTime(args.join(' '), once(child, 'close'))) as [number | null]
  return { code, said }
}

test(
  'it is small, of two layers, and the same whenever it is built',
  async () => {
    const { baseBytes, appBytes } = image.layerBytes
    const sizes = [baseBytes, appBytes].map((bytes) => (bytes / MEBIBYTE).toFixed(1))
    process.stdout.write(`image: base ${String(sizes[0])} MiB, app ${String(sizes[1])} MiB\n`)
    expect(appBytes).toBeLessThan(APP_BYTES_MAX)
    const folder = await mkdtemp(join(tmpdir(), 'curtail-image-again-'))
    try {
      const path = join(folder, 'again.tar')
      await buildImage({ names: ['localhost/curtail:test'], path })
      const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
      expect(digest(await readFile(path))).toBe(digest(image.archiveBytes))
    } finally {
      await rm(folder, { recursive: true })
    }
  },
  BUILD_MS_MAX,
)

test('it holds no shell, and nothing that its user could change', async () => {
  expect(image.config.User).toBe('65532:65532')
  const paths = await readdir(image.folder, { recursive: true })
  expect(paths.filter((path) => /(^|\/)(sh|bash|busybox|apt|dpkg)$/.test(path))).toEqual([
    'var/lib/dpkg',
  ])
  const writable: string[] = []
  for (const path of paths) {
    const facts = await lstat(join(image.folder, path))
    if (facts.uid !== 0 || (!facts.isSymbolicLink() && (facts.mode & 0o022) !== 0)) {
      writable.push(path)
    }
  }
  expect(writable).toEqual(['tmp'])
})

test(
  'every role runs in it and says how it is used',
  async () => {
    const { said } = await runInside(['--help'])
    const roles = [...said.matchAll(/^ {2}([\w-]+) /gm)].map(([, role = '']) => role)
    expect(roles).toEqual(expect.arrayContaining(['standalone', 'create', 'redirect', 'ratelimit']))
    for (const role of roles) {
      const { code, said: help } = await runInside([role, '--help'])
      expect([role, code, help.split('\n')[0]]).toEqual([
        role,
        0,
        expect.stringContaining(`Usage: curtail ${role}`),
      ])
    }
  },
  TEST_MS_MAX,
)

test(
  'standalone serves from it: a link is made and followed, pages and their files are there',
  async () => {
    const [port, adminPort] = [await freePort(), await freePort()]
    const child = image.start(['standalone'], {
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      DATA_DIR: '/tmp/data',
    })
    let said = ''
    child.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()))
    child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
    const ended = once(child, 'close')
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
    expect([created.status, said]).toEqual([201, expect.not.stringContaining('Warning')])
    const { pathname } = new URL(created.headers.get('Location') ?? '')
    expect((await fetch(`${base}${pathname}`, { redirect: 'manual' })).status).toBe(302)
    for (const path of ['/', '/docs', '/favicon.ico', '/assets/page.css', '/openapi.json']) {
      expect([path, (await fetch(`${base}${path}`)).status]).toEqual([path, 200])
    }
    const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
    const rss = Number(/^process_resident_memory_bytes (\S+)/m.exec(metrics)?.[1])
    process.stdout.write(`standalone in the image: ${(rss / MEBIBYTE).toFixed(0)} MiB resident\n`)
    child.kill('SIGTERM')
    expect(await inTime('the end of standalone', ended)).toEqual([0, null])
  },
  TEST_MS_MAX,
)

test('its bill of materials names Node.js, the base and every package, with terms', async () => {
  const text = await readFile(join(image.folder, 'app', 'sbom.json'), 'utf8')
  const sbom = JSON.parse(text) as {
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
  const terms = await readdir(join(image.folder, 'app', 'licences'))
  const npm = sbom.components.filter(({ purl }) => purl.startsWith('pkg:npm/'))
  const named = npm.map(({ name, version }) => `${name}@${version}`.split('/')[0] ?? '')
  expect(named.filter((one) => !terms.includes(one))).toEqual([])
})

const sqlite = /stores\/sqlite\//
const cassandra = /node_modules\/cassandra-driver\/|stores\/cassandra\//
const redis = /node_modules\/ioredis\/|stores\/redis\//
const express = /node_modules\/express\//
const kubernetes = /node_modules\/@kubernetes\/|src\/kube\//
const secret = /codes\/permutation|refill-settings/
const grpcJs = /node_modules\/@grpc\/grpc-js\//
/** Its API is what others speak to, and does nothing by itself. */
const telemetry = /node_modules\/@opentelemetry\/(?!api\/)/

test(
  'each role loads its own dependencies and no other',
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
      const lacks = {
        redirect: [sqlite, kubernetes, secret, grpcJs, telemetry],
        create: [sqlite, kubernetes, secret, grpcJs, telemetry],
        refill: [sqlite, kubernetes, express, redis, telemetry],
        migrate: [sqlite, kubernetes, express, redis, secret, telemetry],
        ratelimit: [sqlite, kubernetes, cassandra, secret, telemetry],
        standalone: [kubernetes, cassandra, redis, grpcJs, telemetry],
      }
      for (const [role, parts] of Object.entries(lacks)) {
        const loaded = loadedBy(role)
        expect(loaded).toContain(`src/roles/${role}.ts`)
        for (const part of parts) expect(loaded.filter((place) => part.test(place))).toEqual([])
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  },
  TEST_MS_MAX,
)
