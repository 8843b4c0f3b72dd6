// Reads the Lua scripts in this folder.
import { readFileSync } from 'node:fs'

/** The source of a script, by its name without `.lua`. */
export function readLua(name: string): string {
  return readFileSync(new URL(`${name}.lua`, import.meta.url), 'utf8')
}
