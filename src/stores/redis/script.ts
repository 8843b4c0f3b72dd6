// The Lua script that counts hits, concatenated at startup from the .lua files in this folder: one
// per algorithm, which returns its functions, then the main body.
import { createHash } from 'node:crypto'
import { COUNT_MAX } from '../../limits/algorithm.ts'
import { algorithms } from '../../limits/algorithms.ts'
import { readLua } from './read-lua.ts'

const header = [
  `local COUNT_MAX, NEVER = ${COUNT_MAX}, -1`,
  'local math, string, tonumber, unpack, redis = math, string, tonumber, unpack, redis',
].join('\n')

/** Evaluates a file only if a limit of the call uses its algorithm. */
const loader = `local algorithms, loaded = {}, {}
local function load(name)
  local algorithm = loaded[name]
  if not algorithm then
    algorithm = algorithms[name]()
    loaded[name] = algorithm
  end
  return algorithm
end`

/** The whole script. */
export const countScript: string = [
  header,
  loader,
  ...algorithms.map(({ name }) => {
    const functions = readLua(name.replaceAll('_', '-'))
    return `algorithms.${name} = function()\n${functions}end`
  }),
  readLua('count-calls'),
].join('\n')

/** The script's SHA-1, for EVALSHA. */
export const countScriptSha: string = createHash('sha1').update(countScript).digest('hex')
