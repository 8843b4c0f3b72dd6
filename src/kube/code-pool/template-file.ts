// The pod template of refill Jobs: a file that may change at any time, like a mounted ConfigMap.
import { readFile } from 'node:fs/promises'
import { ConfigError, fileSettings } from '../../config/config.ts'
import type { Problem } from '../../codes/observed-state.ts'
import { type Background, runInBackground } from '../../resilience/background.ts'
import { controllerSettings } from '../settings.ts'
import { isProblem, parseTemplate, type PodTemplate } from './refill-jobs.ts'

/** The file, and the template as of the last read. */
export interface TemplateFile {
  /** Returns the template, or why it is missing or invalid. */
  readonly get: () => PodTemplate | Problem
  /** Re-reads the file; never rejects because of its content or absence. */
  readonly read: () => Promise<void>
  /** Starts polling. */
  readonly start: () => Background
}

const READ_EVERY_MS = 10_000

const { REFILL_POD_TEMPLATE } = controllerSettings

/** The check of the file; a running controller reports its problem in the status of pools. */
export const refillTemplateFile = fileSettings({ REFILL_POD_TEMPLATE }, async (config) => {
  const path = config.REFILL_POD_TEMPLATE
  const template = createTemplateFile({ path, onChange: () => undefined, onError: () => undefined })
  await template.read()
  const result = template.get()
  if (isProblem(result)) throw new ConfigError([`REFILL_POD_TEMPLATE: ${result.message}`])
})

/** Creates a template file; `onChange` is called when a read changes the result of `get`. */
export function createTemplateFile(deps: {
  readonly path: string
  readonly onChange: () => void
  readonly onError: (error: unknown) => void
}): TemplateFile {
  const { path, onChange } = deps
  let lastKey = ''
  let template: PodTemplate | Problem = missing(path)
  const read = async () => {
    const source = await readFile(path, 'utf8').catch(() => undefined) // reported as missing
    const result = source === undefined ? missing(path) : parseTemplate(source)
    const key = JSON.stringify(result)
    if (key === lastKey) return
    lastKey = key
    template = result
    onChange()
  }
  return {
    get: () => template,
    read,
    start: () => runInBackground({ everyMs: READ_EVERY_MS, task: read, onError: deps.onError }),
  }
}

function missing(path: string): Problem {
  const message = `the pod template of refill Jobs cannot be read: ${path}`
  return { reason: 'TemplateMissing', message }
}
