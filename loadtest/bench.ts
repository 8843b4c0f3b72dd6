// `npm run bench -- NAME [--json PATH] [--repetitions N] [--seconds N]`: runs one benchmark against
// its floor, prints a table, and writes every figure as JSON, to PATH or after the table.
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { benchCreate } from './bench/create.ts'
import { benchCreateCassandra } from './bench/create-cassandra.ts'
import { benchMemory } from './bench/memory.ts'
import { benchRatelimit } from './bench/ratelimit.ts'
import { benchRedirect } from './bench/redirect.ts'
import { benchRedirectRedis } from './bench/redirect-redis.ts'
import { type BenchOptions, renderReport, type Report } from './bench/report.ts'

const benches: Readonly<Record<string, (options: BenchOptions) => Promise<Report>>> = {
  redirect: benchRedirect,
  'redirect-redis': benchRedirectRedis,
  create: benchCreate,
  'create-cassandra': benchCreateCassandra,
  memory: benchMemory,
  ratelimit: benchRatelimit,
}

class UsageError extends Error {}

function parse(args: string[]) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      json: { type: 'string' },
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
  const wholeNumber = (option: 'repetitions' | 'seconds') => {
    const value = Number(values[option])
    if (Number.isInteger(value) && value >= 1 && value <= 60) return value
    throw new UsageError(`--${option} must be an integer from 1 to 60: it is ${values[option]}`)
  }
  const sizes = { repetitions: wholeNumber('repetitions'), seconds: wholeNumber('seconds') }
  return { bench, jsonPath: values.json, ...sizes }
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
  const asked = error instanceof UsageError || error instanceof TypeError
  process.exitCode = asked ? 2 : 1
}
