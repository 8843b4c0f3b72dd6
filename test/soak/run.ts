// `npm run storm -- NAME [SEED]`: runs one of the long fault and fuzz tests, with its full figures.
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = dirname(fileURLToPath(import.meta.url))
const names = readdirSync(folder)
  .filter((file) => file.endsWith('.ts') && file !== 'run.ts')
  .map((file) => file.slice(0, -'.ts'.length))

/** The exports of a test's file. */
export interface SoakTest {
  /** Runs it at full size; throws if it fails. */
  readonly run: (given: { seed: number; log: (line: string) => void }) => Promise<void>
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
log(`${name}, seed ${String(seed)}`)
const { run } = (await import(join(folder, `${name}.ts`))) as SoakTest
const startedMs = performance.now()
await run({ seed, log })
log(`${name} passed, ${((performance.now() - startedMs) / 1000).toFixed(0)} s`)
process.exit() // a driver may keep timers after its nodes were killed
