// The version of the program: package.json is the only source.
import { readFileSync } from 'node:fs'
import * as z from 'zod'

const packageJson = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')

/** The version in package.json, read once. */
export const version: string = z
  .object({ version: z.string() })
  .parse(JSON.parse(packageJson)).version
