// `npm run storm -- NAME [SEED]`: runs one of the long fault and fuzz runs, with its full figures.
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = dirname(fileURLToPath(import.meta.url))
const names = readdirSync(folder)
  .filter((file) => file.endsWith('.ts') && file !== 'run.ts')
  .map((file) => file.slice(0, -'.ts'.length))

/** What a storm's file exports. */
export interface Storm {
  /** Runs it whole; throws what it found. */
  readonly storm: (given: { seed: number; log: (line: string) => void }) => Promise<void>
}

const [name = '', seedText] = process.argv.slice(2)
if (!names.includes(name)) {
  process.stderr.write(`curtail: NAME must be one of ${names.join(', ')}: it is '${name}'\n`)
  process.exit(2)
}
const seed = seedText === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(seedText)
const log = (line: string) => {
  process.stdout.write(`${line}\n`)
}
log(`storm ${name}, seed ${String(seed)}`)
const { storm } = (await import(join(folder, `${name}.ts`))) as Storm
const startedMs = performance.now()
await storm({ seed, log })
log(`storm ${name} held, ${((performance.now() - startedMs) / 1000).toFixed(0)} s`)
process.exit() // whatever a driver may have left running after its nodes were killed
