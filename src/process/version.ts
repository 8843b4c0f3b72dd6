// Which release runs: package.json says it, and nothing else does.
import { readFileSync } from 'node:fs'
import { z } from 'zod'

const packageText = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')

/** The version in package.json, read once. */
export const version: string = z
  .object({ version: z.string() })
  .parse(JSON.parse(packageText)).version
