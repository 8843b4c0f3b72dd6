// Entry point: `main.ts ROLE`. Loads only that role, passes it the environment, and maps its result
// to an exit code: 0, 1 for a failure, 2 for wrong usage or configuration.
import { ConfigError } from './config/config.ts'
import { flushed } from './telemetry/log-output.ts'
import { hasHelpFlag, OperatorError, type Role, stopStarted, UsageError } from './process/role.ts'
import { stopOnSignal } from './process/stop.ts'
import { stopTracing } from './telemetry/tracing.ts'

type Entry = readonly [about: string, load: (subcommand: string) => Promise<{ role: Role }>]

const roles: Readonly<Record<string, Entry>> = {
  standalone: [
    'the whole service in one process, with SQLite',
    () => import('./roles/standalone.ts'),
  ],
  create: ['serves the API and the pages that create links', () => import('./roles/create.ts')],
  redirect: ['redirects clients to the targets of links', () => import('./roles/redirect.ts')],
  controller: [
    'keeps the pools of codes full, in Kubernetes',
    () => import('./roles/controller.ts'),
  ],
  refill: ['generates codes for a pool, as a Job', () => import('./roles/refill.ts')],
  migrate: ['creates or upgrades the tables in Cassandra', () => import('./roles/migrate.ts')],
  ratelimit: ['the rate-limit service for Envoy', () => import('./roles/ratelimit.ts')],
  drain: ['drains Envoy before its pod stops', () => import('./roles/drain.ts')],
  'ratelimit-check': [
    'checks rule files of the role ratelimit',
    () => import('./roles/ratelimit-check.ts'),
  ],
  'wait-for-codes': [
    'waits until a pool has its first codes',
    () => import('./roles/wait-for-codes.ts'),
  ],
  smoke: ['tests a running service as a client', () => import('./roles/smoke.ts')],
  link: ['shows, disables, enables or deletes a link', () => import('./roles/link.ts')],
  limit: ['shows what the limiters deny', () => import('./roles/limit.ts')],
  pool: [
    'shows how many codes the pools contain; raises them after a restore',
    (subcommand) =>
      subcommand === 'raise' ? import('./roles/raise-pools.ts') : import('./roles/pool.ts'),
  ],
}

const names = Object.keys(roles)
const lines = names.map((name) => `  ${name.padEnd(17)}${roles[name]?.[0] ?? ''}\n`)
const usage = [
  'Usage: curtail ROLE [--help]\n\nRoles:\n',
  ...lines,
  '\ncurtail ROLE --help prints the arguments and settings of a role.\n',
].join('')

/** The program in the image of envoyproxy/ratelimit, which commands of containers name. */
const REFERENCE_PROGRAM = '/bin/ratelimit'

/** Runs the role `ratelimit` with the responses of that program, unless these settings are set. */
function replaceReference(): string {
  for (const name of ['LIMIT_CLIENT_HEADERS', 'LIMIT_METADATA', 'LIMIT_TOP_VALUES']) {
    if ((process.env[name] ?? '') === '') process.env[name] = 'false'
  }
  return 'ratelimit'
}

async function main([program = '', ...args]: readonly string[]): Promise<void> {
  const name = program === REFERENCE_PROGRAM ? replaceReference() : program
  if (name === 'help' || hasHelpFlag([name])) {
    process.stdout.write(usage)
    return
  }
  const entry = Object.hasOwn(roles, name) ? roles[name] : undefined
  if (entry === undefined) {
    const given = name === '' ? 'none is given' : `it is ${JSON.stringify(name)}`
    throw new UsageError(`ROLE must be one of ${names.join(', ')}: ${given}; --help lists them`)
  }
  const [, load] = entry
  const { role } = await load(args[0] ?? '')
  if (hasHelpFlag(args)) {
    process.stdout.write(role.help)
    return
  }
  const stopping = new AbortController()
  const starting = role.start({ env: process.env, args, signal: stopping.signal })
  const stop = () => {
    stopping.abort()
    return stopStarted(starting).finally(stopTracing).finally(flushStdout)
  }
  let stopMsMax: number | undefined
  stopOnSignal({
    stop,
    onFailure: printError,
    onTimeout: (ms) => {
      printError(new OperatorError(`not stopped within ${ms} ms: exiting`))
    },
    msMax: () => stopMsMax,
  })
  const started = await starting
  if (!('exitCode' in started)) {
    stopMsMax = started.stopMsMax
    return
  }
  await stopTracing()
  await flushStdout()
  process.exit(started.exitCode) // even if a driver left handles open
}

const flushStdout = () => flushed(process.stdout)

function printError(error: unknown): void {
  const expected = [ConfigError, UsageError, OperatorError].some((type) => error instanceof type)
  const message = expected ? (error as Error).message : ((error as Error).stack ?? String(error))
  for (const line of message.split('\n')) process.stderr.write(`curtail: ${line}\n`)
}

// A closed pipe must not stop the process. Each write reports its error to its own caller.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

try {
  await main(process.argv.slice(2))
} catch (error) {
  printError(error)
  process.exit(error instanceof ConfigError || error instanceof UsageError ? 2 : 1)
}
