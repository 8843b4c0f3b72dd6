// The pod template of refill Jobs as a file that may change at any time, as mounted ConfigMaps do.
import { readFile } from 'node:fs/promises'
import type { Trouble } from '../../codes/refill-sight.ts'
import { type Background, runInBackground } from '../../resilience/background.ts'
import { parseTemplate, type PodTemplate } from './refill-jobs.ts'

/** The template as it was last read. */
export interface TemplateFile {
  /** The template, or why there is none. */
  readonly get: () => PodTemplate | Trouble
  /** Reads it now. */
  readonly read: () => Promise<void>
  /** Begins to read it again and again. */
  readonly begin: () => Background
}

const READ_EVERY_MS = 10_000

/** A file that has not been read; `onChange` is told whenever it reads otherwise than before. */
export function createTemplateFile(deps: {
  readonly path: string
  readonly onChange: () => void
  readonly onError: (error: unknown) => void
}): TemplateFile {
  const { path, onChange } = deps
  let seen = ''
  let template: PodTemplate | Trouble = missing(path)
  const read = async () => {
    const text = await readFile(path, 'utf8').catch(() => undefined) // said by its trouble
    const now = text === undefined ? missing(path) : parseTemplate(text)
    const key = JSON.stringify(now)
    if (key === seen) return
    seen = key
    template = now
    onChange()
  }
  return {
    get: () => template,
    read,
    begin: () => runInBackground({ everyMs: READ_EVERY_MS, task: read, onError: deps.onError }),
  }
}

function missing(path: string): Trouble {
  const message = `the pod template of refill Jobs cannot be read: ${path}`
  return { reason: 'TemplateMissing', message }
}
