// The Lua script that counts hits, concatenated at startup from the .lua files in this folder: one
// per algorithm, then the main body.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { COUNT_MAX } from '../../limits/algorithm.ts'
import { algorithms } from '../../limits/algorithms.ts'

const read = (name: string) => readFileSync(new URL(`${name}.lua`, import.meta.url), 'utf8')

const names = algorithms.map(({ name }) => name)

const constants = [
  `local COUNT_MAX, NEVER = ${COUNT_MAX}, -1`,
  'local math, string, tonumber, unpack, redis = math, string, tonumber, unpack, redis',
].join('\n')

/** The whole script. */
export const countScript: string = [
  constants,
  ...names.map((name) => read(name.replaceAll('_', '-'))),
  `local algorithms = { ${names.map((name) => `${name} = ${name}`).join(', ')} }`,
  read('count-calls'),
].join('\n')

/** The script's SHA-1, for EVALSHA. */
export const countScriptSha: string = createHash('sha1').update(countScript).digest('hex')
