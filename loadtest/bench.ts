// `npm run bench -- NAME [--json PATH] [--repetitions N] [--seconds N]`: runs one benchmark against
// its floor, prints a table, and writes all figures as JSON to PATH or after the table. `--links N`
// sets the number of links of the benchmarks `growth`, `peak` and `redirect`, `--clients N` the
// number of client addresses of `redirect`.
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { benchBlocked } from './bench/blocked.ts'
import { benchCold } from './bench/cold.ts'
import { benchCreate } from './bench/create.ts'
import { benchCreateCassandra } from './bench/create-cassandra.ts'
import { benchGrowth } from './bench/growth.ts'
import { benchMemory } from './bench/memory.ts'
import { benchPath } from './bench/path.ts'
import { benchPeak } from './bench/peak.ts'
import { benchRatelimit } from './bench/ratelimit.ts'
import { benchRedirect } from './bench/redirect.ts'
import { benchRedirectRedis } from './bench/redirect-redis.ts'
import { type BenchOptions, renderReport, type Report } from './bench/report.ts'
import { benchRules } from './bench/rules.ts'
import { benchTop } from './bench/top.ts'
import { benchTracing } from './bench/tracing.ts'

type Options = BenchOptions & { readonly links?: number; readonly clients?: number }

const benches: Readonly<Record<string, (options: Options) => Promise<Report>>> = {
  blocked: benchBlocked,
  cold: benchCold,
  redirect: benchRedirect,
  'redirect-redis': benchRedirectRedis,
  create: benchCreate,
  'create-cassandra': benchCreateCassandra,
  growth: benchGrowth,
  memory: benchMemory,
  path: benchPath,
  peak: benchPeak,
  ratelimit: benchRatelimit,
  rules: benchRules,
  top: benchTop,
  tracing: benchTracing,
}

/**
 * `growth` also measures a tenth of them, and requests each cold code only once; `peak` caches a
 * tenth of them.
 */
const linksMins: ReadonlyMap<unknown, number> = new Map([
  [benchGrowth, 400_000],
  [benchPeak, 1000],
])
const LINKS_MAX = 100_000_000
const CLIENTS_MAX = 2000

class UsageError extends Error {}

function parse(args: string[]) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      json: { type: 'string' },
      links: { type: 'string' },
      clients: { type: 'string', default: '1' },
      repetitions: { type: 'string', default: '7' },
      seconds: { type: 'string', default: '4' },
    },
  })
  const name = positionals.join(' ')
  const bench = Object.hasOwn(benches, name) ? benches[name] : undefined
  if (bench === undefined) {
    const names = Object.keys(benches).join(', ')
    throw new UsageError(`NAME must be one of ${names}: it is '${name}'`)
  }
  const wholeNumber = (option: 'repetitions' | 'seconds' | 'clients', max: number) => {
    const value = Number(values[option])
    if (Number.isInteger(value) && value >= 1 && value <= max) return value
    throw new UsageError(`--${option} must be an integer from 1 to ${max}: it is ${values[option]}`)
  }
  const sizes = {
    repetitions: wholeNumber('repetitions', 60),
    seconds: wholeNumber('seconds', 60),
    clients: wholeNumber('clients', CLIENTS_MAX),
  }
  const links = values.links === undefined ? undefined : Number(values.links)
  const linksMin = linksMins.get(bench) ?? 1
  if (
    links !== undefined &&
    !(Number.isInteger(links) && links >= linksMin && links <= LINKS_MAX)
  ) {
    const allowed = `${linksMin} to ${LINKS_MAX}`
    throw new UsageError(`--links must be an integer from ${allowed}: it is ${values.links}`)
  }
  return { bench, jsonPath: values.json, ...sizes, ...(links !== undefined && { links }) }
}

async function main(args: string[]): Promise<void> {
  const { bench, jsonPath, ...sizes } = parse(args)
  const log = (line: string) => void process.stderr.write(`${line}\n`)
  const report = await bench({ ...sizes, log })
  process.stdout.write(renderReport(report))
  const json = `${JSON.stringify(report, undefined, jsonPath === undefined ? 0 : 2)}\n`
  if (jsonPath === undefined) process.stdout.write(`\n${json}`)
  else writeFileSync(jsonPath, json)
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`curtail: ${error instanceof Error ? error.message : String(error)}\n`)
  const isUsageError = error instanceof UsageError || error instanceof TypeError
  process.exitCode = isUsageError ? 2 : 1
}
