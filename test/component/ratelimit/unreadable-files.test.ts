// Rules and a certificate that a `ratelimit` process cannot read when they change, because it has
// no file descriptor left: it loads them later without another change.
import { execFileSync } from 'node:child_process'
import { renameSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { freePort } from '../../dependencies/free-ports.ts'
import { type RoleProcess, startRole } from '../../kit/processes/role-process.ts'
import { createAuthority, serialNumberOf } from '../../kit/ratelimit/grpc-certificates.ts'
import { waitFor } from '../../kit/wait-for.ts'
import { limiterEnvironment } from '../../stack/limiter-environment.ts'

const TEST_MS_MAX = 180_000
/** Two polls of watch-files.ts, and their reads. */
const RETRIES_MS = 5000
const authority = createAuthority('servers of the test')

let root: string
let limiter: RoleProcess | undefined
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'curtail-unreadable-'))
  await mkdir(join(root, 'config'))
})
afterEach(async () => {
  await limiter?.stop()
  limiter = undefined
  await rm(root, { recursive: true })
})

const fileNames = ['tls.crt', 'tls.key', 'rules.yaml'] as const

/** Writes the files; `install` moves them to their paths, which opens none. */
async function filesOf(domain: string) {
  const { cert, key } = authority.issue(['localhost'])
  const limit = '{key: k, rate_limit: {unit: hour, requests_per_unit: 5}}'
  const rules = `domain: ${domain}\ndescriptors: [${limit}]\n`
  const contents = [cert, key, rules]
  for (const [at, name] of fileNames.entries())
    await writeFile(join(root, `${name}.next`), contents[at] ?? '')
  const pathOf = (name: string) => join(root, name === 'rules.yaml' ? 'config' : '', name)
  const install = () => {
    for (const name of fileNames) renameSync(join(root, `${name}.next`), pathOf(name))
  }
  return { pathOf, install }
}

/** The number of lines that report an unread file. Connections also fail with EMFILE. */
function unreadIn({ log }: RoleProcess): number {
  const lines = log.map((line) => JSON.stringify(line))
  return lines.filter((line) => /[cC]annot (be )?read.*EMFILE/.test(line)).length
}

/** Sets the number of file descriptors that the process may have open. */
function setDescriptors({ pid }: RoleProcess, limit: number): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${String(limit)}:`])
}

test(
  'files that cannot be read are loaded once they can, and are reported once',
  async () => {
    const { pathOf, install } = await filesOf('shop')
    install()
    const started = await startRole({
      role: 'ratelimit',
      env: {
        ...limiterEnvironment(root, await freePort()),
        GRPC_SERVER_USE_TLS: 'true',
        GRPC_SERVER_TLS_CERT: pathOf('tls.crt'),
        GRPC_SERVER_TLS_KEY: pathOf('tls.key'),
      },
    })
    limiter = started
    const grpcPort = Number(started.ready['grpcPort'])
    const rules = async () =>
      (await fetch(`http://127.0.0.1:${String(started.ready['debugPort'])}/rlconfig`)).text()
    const serialNumber = await serialNumberOf(grpcPort, authority)
    const linesWith = (content: string) =>
      started.log.filter((line) => JSON.stringify(line).includes(content)).length
    const changed = await filesOf('books')
    setDescriptors(started, 1)
    changed.install()
    await waitFor('the reports', () => unreadIn(started) === 2)
    await sleep(RETRIES_MS)
    expect(unreadIn(started)).toBe(2)
    setDescriptors(started, 1024)
    await waitFor('the rules', () => linesWith('rules loaded') === 2)
    await waitFor(
      'the certificate',
      async () => (await serialNumberOf(grpcPort, authority)) !== serialNumber,
    )
    expect(await rules()).toContain('books')
  },
  TEST_MS_MAX,
)

test(
  'files that cannot be read on SIGHUP are loaded once they can, without a change',
  async () => {
    const { install } = await filesOf('shop')
    install()
    await symlink('.', join(root, 'current'))
    const started = await startRole({
      role: 'ratelimit',
      env: {
        ...limiterEnvironment(join(root, 'current'), await freePort()),
        RUNTIME_WATCH_ROOT: 'true',
      },
    })
    limiter = started
    const linesWith = (content: string) =>
      started.log.filter((line) => JSON.stringify(line).includes(content)).length
    setDescriptors(started, 1)
    process.kill(started.pid, 'SIGHUP')
    await waitFor('the report', () => unreadIn(started) === 1)
    setDescriptors(started, 1024)
    await waitFor('the rules', () => linesWith('rules loaded') === 2)
  },
  TEST_MS_MAX,
)
