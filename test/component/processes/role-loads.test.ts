// The modules that each role loads: only its own dependencies, so that it starts quickly, stays
// small and has no access to the code secret unless it needs it.
import { spawnSync } from 'node:child_process'
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** A module that prints the URL of each module that the process loads after it. */
const loadReporter = `data:text/javascript,${encodeURIComponent(`
import { registerHooks } from 'node:module'
registerHooks({
  load(url, context, next) {
    process.stderr.write('loaded ' + url + '\\n')
    return next(url, context)
  },
})`)}`

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-loads-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** Files of the checkout and packages that a role loads before it starts. */
async function loadedBy(role: string): Promise<string[]> {
  const args = ['--import', loadReporter, 'src/main.ts', role, '--help']
  // A file, because a process that exits drops what a pipe has not accepted yet.
  await using output = await open(join(folder, role), 'w+')
  const { status } = spawnSync(process.execPath, args, {
    cwd: root,
    stdio: ['ignore', 'ignore', output.fd],
  })
  expect([role, status]).toEqual([role, 0])
  const stderr = await readFile(join(folder, role), 'utf8')
  return [...stderr.matchAll(/^loaded (.*)$/gm)].map(([, url = '']) =>
    url.replace(/^file:\/\//, ''),
  )
}

const sqlite = /node:sqlite|stores\/sqlite\//
const grpc = /node_modules\/@grpc\/|src\/grpc\//
const cassandra = /node_modules\/cassandra-driver\/|stores\/cassandra\//
const redis = /node_modules\/ioredis\/|stores\/redis\//
const kubernetes = /node_modules\/@kubernetes\/|src\/kube\//
const creating = /src\/http\/create\/|src\/http\/pages\/docs/
const secret = /codes\/permutation|refill-settings/
const express = /node_modules\/express\//

test.each([
  ['redirect', { has: [cassandra, redis], lacks: [sqlite, grpc, kubernetes, creating, secret] }],
  ['create', { has: [cassandra, redis, creating], lacks: [sqlite, grpc, kubernetes, secret] }],
  ['refill', { has: [cassandra, secret], lacks: [sqlite, grpc, kubernetes, express, redis] }],
  ['migrate', { has: [cassandra], lacks: [sqlite, grpc, kubernetes, express, redis, secret] }],
  ['ratelimit', { has: [redis, grpc], lacks: [sqlite, cassandra, kubernetes, creating, secret] }],
  [
    'controller',
    {
      has: [cassandra, express, /src\/kube\//],
      lacks: [sqlite, grpc, redis, creating, secret, /node_modules\/@kubernetes\//],
    },
  ],
  ['drain', { has: [express], lacks: [sqlite, grpc, cassandra, redis, kubernetes, creating] }],
  [
    'wait-for-codes',
    { has: [cassandra], lacks: [sqlite, grpc, kubernetes, express, redis, secret] },
  ],
  ['smoke', { has: [], lacks: [sqlite, grpc, cassandra, redis, kubernetes, creating, secret] }],
  ['standalone', { has: [sqlite, creating], lacks: [grpc, cassandra, redis, kubernetes] }],
] as const)('%s loads its own dependencies and no other', async (role, { has, lacks }) => {
  const loaded = await loadedBy(role)
  for (const pattern of has) {
    expect([pattern, loaded.some((url) => pattern.test(url))]).toEqual([pattern, true])
  }
  for (const pattern of lacks) expect(loaded.filter((url) => pattern.test(url))).toEqual([])
})
