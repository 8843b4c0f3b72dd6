// Node.js can load every test of `npm run storm`: they run manually, and their imports change in
// the meantime.
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'

const run = promisify(execFile)
const folder = fileURLToPath(new URL('../../soak', import.meta.url))
const LOAD_MS_MAX = 60_000

test(
  'Node.js can load every fault and soak test',
  async () => {
    const files = readdirSync(folder).filter((file) => file.endsWith('.ts') && file !== 'run.ts')
    const names = JSON.stringify(files.map((file) => join(folder, file)))
    const check = `for (const name of ${names}) {
      if (typeof (await import(name)).run !== 'function') throw new Error(name)
    }
    process.stdout.write('loaded')
    process.exit()`
    const args = ['--input-type=module', '--eval', check]
    const { stdout } = await run(process.execPath, args, { timeout: LOAD_MS_MAX })
    expect(stdout).toBe('loaded')
    expect(files.length).toBeGreaterThan(10)
  },
  LOAD_MS_MAX,
)
