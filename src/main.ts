// The front door: `main.ts ROLE`. Loads that role alone, hands it the environment, and turns its
// end into an exit code: 0, 1 for what failed, 2 for what was asked wrongly.
import { ConfigError } from './process/config.ts'
import { asksForHelp, OperatorError, type Role, stopStarted, UsageError } from './process/role.ts'
import { stopOnSignal } from './process/stop.ts'
import { stopTracing } from './process/tracing.ts'

const roles: Readonly<Record<string, { about: string; load: () => Promise<{ role: Role }> }>> = {
  standalone: {
    about: 'the whole service in one process, on SQLite',
    load: () => import('./roles/standalone.ts'),
  },
  link: {
    about: 'shows, disables, enables or deletes a link, by the admin API',
    load: () => import('./roles/link.ts'),
  },
  pool: {
    about: 'shows the pools of codes, by the admin API',
    load: () => import('./roles/pool.ts'),
  },
}

const names = Object.keys(roles)
const lines = names.map((name) => `  ${name.padEnd(12)}${roles[name]?.about ?? ''}\n`)
const usage = `Usage: curtail ROLE [--help]\n\n${lines.join('')}`

async function main([name = '', ...args]: readonly string[]): Promise<void> {
  if (name === 'help' || asksForHelp([name])) {
    process.stdout.write(usage)
    return
  }
  const entry = Object.hasOwn(roles, name) ? roles[name] : undefined
  if (entry === undefined) {
    const given = name === '' ? 'none is given' : `it is ${JSON.stringify(name)}`
    throw new UsageError(`ROLE must be one of ${names.join(', ')}: ${given}; --help lists them`)
  }
  const { role } = await entry.load()
  if (asksForHelp(args)) {
    process.stdout.write(role.help)
    return
  }
  const starting = role.start({ env: process.env, args })
  stopOnSignal(() => stopStarted(starting).finally(stopTracing), complain)
  const started = await starting
  if ('exitCode' in started) process.exitCode = started.exitCode
}

function complain(error: unknown): void {
  const expected = [ConfigError, UsageError, OperatorError].some((kind) => error instanceof kind)
  const sentences = expected ? (error as Error).message : ((error as Error).stack ?? String(error))
  for (const line of sentences.split('\n')) process.stderr.write(`curtail: ${line}\n`)
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  complain(error)
  process.exit(error instanceof ConfigError || error instanceof UsageError ? 2 : 1)
}
