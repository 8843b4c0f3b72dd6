// Renders the edge's files byte for byte as Helm's `tpl` does, with the small subset of its
// template language that they use. Reads the templates from its own folder; writes nothing.
import { readFileSync } from 'node:fs'
import { completeEdgeSettings, type EdgeSettings, type GivenEdgeSettings } from './edge-settings.ts'

/** Renders Envoy's bootstrap. Throws an error that lists every invalid setting. */
export function renderBootstrap(given: GivenEdgeSettings): string {
  return renderTemplate(read('envoy.yaml'), valuesOf(completeEdgeSettings(given)))
}

/** Renders the file at `certificatePath`, needed if `tls` is on. Throws as `renderBootstrap`. */
export function renderCertificate(given: GivenEdgeSettings): string {
  return renderTemplate(read('certificate.yaml'), valuesOf(completeEdgeSettings(given)))
}

function read(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8')
}

/** Values by their names. */
type Values = Readonly<Record<string, unknown>>

function valuesOf(settings: EdgeSettings): Values {
  return { ...settings }
}

const controlLine = /^\s*\{\{- (?:(if|range) \.(\w+)|(else|end)) \}\}$/
const anyAction = /\{\{.*?\}\}/g
const valueAction = /^\{\{ \.(\w+)( \| toJson)? \}\}$/

/** Renders a template. Throws if it uses anything outside the subset. */
export function renderTemplate(template: string, values: Values): string {
  const lines = template.split('\n')
  const block = readBlock(lines, 0)
  if (block.next < lines.length) throw new Error(`line ${block.next + 1}: no block is open`)
  return block.parts.flatMap((part) => part(values)).join('\n')
}

/** Renders the lines of one node of a template. */
type Part = (values: Values) => readonly string[]

/** Parses nodes up to an `end` or `else` of their block, or to the end of the template. */
function readBlock(lines: readonly string[], from: number): { parts: Part[]; next: number } {
  const parts: Part[] = []
  let at = from
  for (let line = lines[at]; line !== undefined; line = lines[at]) {
    const control = controlLine.exec(line)
    if (control === null) {
      parts.push((values) => [fillLine(line, values)])
      at++
      continue
    }
    if (lines[at - 1]?.trim() === '') throw new Error(`line ${at + 1}: it follows an empty line`)
    const [, word, name = ''] = control
    if (word === undefined) break
    const read = readControl(lines, { at, word, name })
    parts.push(read.part)
    at = read.next
  }
  return { parts, next: at }
}

function readControl(
  lines: readonly string[],
  { at, word, name }: { at: number; word: string; name: string },
): { part: Part; next: number } {
  const first = readBlock(lines, at + 1)
  const isDivided = word === 'if' && wordOf(lines[first.next]) === 'else'
  const second = isDivided ? readBlock(lines, first.next + 1) : { parts: [], next: first.next }
  if (wordOf(lines[second.next]) !== 'end') throw new Error(`line ${at + 1}: the block has no end`)
  const next = second.next + 1
  if (word === 'if') {
    const choose = (values: Values) => (isTrue(valueOf(values, name)) ? first : second).parts
    return { part: (values) => choose(values).flatMap((part) => part(values)), next }
  }
  const each = (values: Values) => valueOf(values, name) as readonly Values[]
  return {
    part: (values) => each(values).flatMap((one) => first.parts.flatMap((part) => part(one))),
    next,
  }
}

function wordOf(line: string | undefined): string | undefined {
  return line === undefined ? undefined : controlLine.exec(line)?.[3]
}

function fillLine(line: string, values: Values): string {
  return line.replace(anyAction, (action) => {
    const [, name, asJson] = valueAction.exec(action) ?? []
    if (name === undefined) throw new Error(`${action} is not a supported action`)
    const value = valueOf(values, name)
    if (asJson !== undefined) return renderJson(value)
    if (typeof value !== 'string') throw new Error(`${name} is not a string: render it with toJson`)
    return value
  })
}

function valueOf(values: Values, name: string): unknown {
  if (!Object.hasOwn(values, name)) throw new Error(`there is no setting ${name}`)
  return values[name]
}

/** Truth as in Go templates. */
function isTrue(value: unknown): boolean {
  return value !== false && value !== '' && value !== 0
}

/** JSON as Go encodes it: these five characters are escaped. */
function renderJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
