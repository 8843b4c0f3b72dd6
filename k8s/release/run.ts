// `npm run release -- VERSION --registry NAME [--out FOLDER] [--key FILE]`: builds a release of the
// checkout's commit into a folder, without a daemon or a registry. See docs/release.md.
import { resolve } from 'node:path'
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { writeRelease } from './release.ts'
import { readSigningKey } from './signing-key.ts'

const USAGE = 'usage: npm run release -- VERSION --registry NAME [--out FOLDER] [--key FILE]'
const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/
const REGISTRY = /^[a-z0-9][a-z0-9.:-]*(\/[a-z0-9][a-z0-9._-]*)*$/

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      registry: { type: 'string', default: '' },
      out: { type: 'string', default: 'release' },
      key: { type: 'string' },
    },
  })
  const [version = ''] = positionals
  const { registry } = values
  if (positionals.length !== 1 || !VERSION.test(version) || registry === '') throw new Error(USAGE)
  if (!REGISTRY.test(registry)) throw new Error(`${registry} is not the name of a registry`)
  const folder = resolve(values.out)
  if (existsSync(folder)) throw new Error(`Cannot write the release to ${folder}: it exists`)
  const key = values.key === undefined ? undefined : await readSigningKey(values.key)
  const digests = await writeRelease({ version, registry, folder, key })
  process.stdout.write(`${digests}${folder}: ${key ? 'signed' : 'not signed: no --key'}\n`)
}

await main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
