// The one script that Redis runs for a call, joined at the start from the .lua files beside this
// one: an algorithm each, then the frame that makes the charges. Sends nothing.
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
export const chargeScript: string = [
  constants,
  ...names.map((name) => read(name.replaceAll('_', '-'))),
  `local algorithms = { ${names.map((name) => `${name} = ${name}`).join(', ')} }`,
  read('charge-calls'),
].join('\n')

/** The name by which Redis knows it, once it has seen it. */
export const chargeScriptSha: string = createHash('sha1').update(chargeScript).digest('hex')
