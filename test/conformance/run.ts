// `npm run conformance [-- --against COMMAND] [PART...]`: envoyproxy/ratelimit's own fixtures,
// client and scripts against our role `ratelimit`, or its client and scripts against the service
// that COMMAND starts. By hand, as root on Linux: its source, which REFERENCE_GIT names, is not
// in CI.
import { execFileSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { roleArguments } from '../kit/processes/role-process.ts'
import { findAptDependency } from '../dependencies/apt.ts'
import { findCurl } from '../dependencies/curl.ts'
import { findEnvoy } from '../dependencies/envoy.ts'
import { runClient } from './client.ts'
import { checkFixtures } from './fixtures.ts'
import type { Outcome } from './outcome.ts'
import { CannotRun, readServiceEnv, unpackReference } from './reference.ts'
import { runScripts, type TaskOf } from './scripts.ts'
import { findStatsdExporter } from './statsd-exporter.ts'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
/** The whole run, parts already fetched, ends within this; else it has failed. */
const RUN_MS_MAX = 25 * 60_000
const hosts = '127.0.0.1 localhost redis statsd ratelimit envoy-proxy envoy-mock\n'
/** Fails at once for names that the hosts file does not have. */
const resolver = 'options timeout:1 attempts:1\n'

const log = (line: string) => void process.stdout.write(`${line}\n`)

const parts = ['fixtures', 'client', 'scripts'] as const

function readRequest() {
  const options = { against: { type: 'string' } } as const
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  const odd = positionals.find((part) => !parts.some((known) => known === part))
  if (odd !== undefined) {
    throw new CannotRun(`PART must be one of ${parts.join(', ')}: it is '${odd}'`)
  }
  const git = process.env['REFERENCE_GIT']
  if (git === undefined || git === '') {
    throw new CannotRun(
      'REFERENCE_GIT must name a git directory of envoyproxy/ratelimit, whose tests are run: ' +
        'git clone --bare https://github.com/envoyproxy/ratelimit gives one',
    )
  }
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    throw new CannotRun('the conformance run needs Linux and root: it makes namespaces')
  }
  const ours = [process.execPath, ...roleArguments('ratelimit')]
  const service = values.against?.split(' ') ?? ours
  const asked = parts.filter((part) => positionals.length === 0 || positionals.includes(part))
  // The fixtures ask our check, which no other service has.
  const chosen = asked.filter((part) => part !== 'fixtures' || values.against === undefined)
  return { git, service, chosen, client: process.env['REFERENCE_CLIENT'] }
}

function tell({ name, hasPassed, detail }: Outcome): void {
  const [first = '', ...more] = detail.trim().split('\n')
  log(`${hasPassed ? 'PASS' : 'FAIL'} ${name}: ${first}`)
  for (const line of more) log(`     | ${line}`)
}

/** Makes tasks: a folder for each, with a copy of the reference's example rules. */
async function prepareTasks(
  folder: string,
  given: { reference: string; service: readonly string[] },
): Promise<TaskOf> {
  const [envoy, statsdExporter] = await Promise.all([findEnvoy(), findStatsdExporter()])
  await findAptDependency('redis-server')
  await findCurl()
  const hostsFile = join(folder, 'hosts')
  const resolverFile = join(folder, 'resolv.conf')
  await writeFile(hostsFile, hosts)
  await writeFile(resolverFile, resolver)
  const env = await readServiceEnv(given.reference)
  const paths = { hostsFile, resolverFile, envoy, statsdExporter, cwd: root }
  let count = 0
  return async (name, commands) => {
    const own = join(folder, `${String(++count)}-${name}`)
    const rules = join(own, 'data/ratelimit/config')
    await mkdir(rules, { recursive: true })
    await cp(join(given.reference, 'examples/ratelimit/config'), rules, { recursive: true })
    // Statistics once a second: the script that reads them waits 5 s, and the default is 10 s.
    const ours = { RUNTIME_ROOT: join(own, 'data'), STATS_FLUSH_INTERVAL: '1s' }
    const task = { ...paths, ...given, folder: own, serviceEnv: { ...env, ...ours } }
    return { ...task, ...commands }
  }
}

async function main(): Promise<number> {
  const { git, service, chosen, client } = readRequest()
  const folder = await mkdtemp(join(tmpdir(), 'curtail-conformance-'))
  try {
    log(`reference: ${(await unpackReference(git, folder)).trim()}`)
    const taskOf = await prepareTasks(folder, { reference: folder, service })
    const late = setTimeout(() => {
      log(`FAIL the run: it took longer than ${RUN_MS_MAX / 60_000} minutes`)
      process.exit(1) // the stacks end with this process
    }, RUN_MS_MAX)
    const check = [process.execPath, ...roleArguments('ratelimit-check')]
    const runs = {
      fixtures: () => checkFixtures(folder, check),
      client: () => runClient(client, taskOf),
      scripts: () => runScripts({ reference: folder, taskOf, log }),
    }
    const all: Outcome[] = []
    for (const part of chosen) {
      const outcomes = await runs[part]()
      outcomes.forEach(tell)
      all.push(...outcomes)
    }
    clearTimeout(late)
    const failed = all.filter(({ hasPassed }) => !hasPassed).length
    log(`${all.length - failed} passed, ${failed} failed`)
    return failed === 0 ? 0 : 1
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

try {
  execFileSync('unshare', ['--version'], { stdio: 'ignore' })
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`curtail: ${error instanceof Error ? error.message : String(error)}\n`)
  const asked = error instanceof CannotRun || error instanceof TypeError
  process.exitCode = asked ? 2 : 1
}
