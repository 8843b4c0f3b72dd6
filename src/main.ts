// The front door: `main.ts ROLE`. Loads that role alone, hands it the environment, and turns its
// end into an exit code: 0, 1 for what failed, 2 for what was asked wrongly.
import { ConfigError } from './process/config.ts'
import { OperatorError, UsageError, type Role } from './process/role.ts'
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
const usage = [
  'Usage: curtail ROLE [--help]\n',
  ...names.map((name) => `  ${name.padEnd(12)}${roles[name]?.about ?? ''}`),
  '',
].join('\n')

async function main([name = '', ...args]: readonly string[]): Promise<void> {
  if (name === '--help' || name === 'help') {
    process.stdout.write(usage)
    return
  }
  const entry = Object.hasOwn(roles, name) ? roles[name] : undefined
  if (entry === undefined) {
    throw new UsageError(`ROLE must be one of ${names.join(', ')}: it is ${JSON.stringify(name)}`)
  }
  const { role } = await entry.load()
  if (args.includes('--help')) {
    process.stdout.write(role.help)
    return
  }
  const started = await role.start({ env: process.env, args })
  if ('exitCode' in started) process.exitCode = started.exitCode
  else stopOnSignal(() => started.stop().finally(stopTracing), complain)
}

function complain(error: unknown): void {
  const expected = [ConfigError, UsageError, OperatorError].some((kind) => error instanceof kind)
  const lines = expected ? (error as Error).message : ((error as Error).stack ?? String(error))
  for (const line of lines.split('\n')) process.stderr.write(`curtail: ${line}\n`)
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  complain(error)
  process.exit(error instanceof ConfigError || error instanceof UsageError ? 2 : 1)
}
