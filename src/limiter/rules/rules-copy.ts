// Keeps a copy of the last valid rule files in one file, so that a restarted process has rules even
// if the rule files are invalid.
import { readFile, rename, stat, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import type { ReadFile } from '../../process/file-tree.ts'
import type { Log } from '../../telemetry/log.ts'

/** The copy. Its methods never throw: the limiter logs errors and works without a copy. */
export interface RulesCopy {
  /** The files of the last valid set; `undefined` if the copy does not exist or is unreadable. */
  read(): Promise<readonly ReadFile[] | undefined>
  /** Replaces the copy as a whole. */
  write(files: readonly ReadFile[]): Promise<void>
}

/** Twice the 16 MiB of all rule files: JSON escapes quotes and line breaks with two characters. */
const BYTES_MAX = 32 * 1024 * 1024
const shape = z.array(z.strictObject({ name: z.string(), text: z.string() }))

/** The copy at a path; its folder must exist. */
export function openRulesCopy(path: string, log: Pick<Log, 'warn'>): RulesCopy {
  return {
    async read() {
      try {
        const { size } = await stat(path)
        if (size > BYTES_MAX)
          throw new Error(`the file must have at most ${BYTES_MAX} bytes: it has ${size}`)
        return shape.parse(JSON.parse(await readFile(path, 'utf8')))
      } catch (err) {
        if ((err as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        log.warn({ err, path }, 'cannot read the copy of the rules')
        return undefined
      }
    },
    async write(files) {
      try {
        const named = files.map(({ name, text }) => ({ name, text }))
        await writeFile(`${path}.new`, JSON.stringify(named), { mode: 0o600 })
        await rename(`${path}.new`, path)
      } catch (err) {
        log.warn({ err, path }, 'cannot write the copy of the rules')
      }
    },
  }
}
