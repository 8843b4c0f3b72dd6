// Renders the edge's files byte for byte like Helm's `tpl`. Supports only the subset of the
// template language that these files use. Reads the templates from its folder; writes nothing.
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
  return block.nodes.flatMap((node) => node(values)).join('\n')
}

/** Renders the lines of one node of a template. */
type TemplateNode = (values: Values) => readonly string[]

interface Block {
  readonly nodes: readonly TemplateNode[]
  /** Index of the line after the block. */
  readonly next: number
}

/** Parses nodes up to an `end` or `else` of their block, or to the end of the template. */
function readBlock(lines: readonly string[], from: number): Block {
  const nodes: TemplateNode[] = []
  let at = from
  for (let line = lines[at]; line !== undefined; line = lines[at]) {
    const control = controlLine.exec(line)
    if (control === null) {
      nodes.push((values) => [fillLine(line, values)])
      at++
      continue
    }
    if (lines[at - 1]?.trim() === '') throw new Error(`line ${at + 1}: after an empty line`)
    const [, word, name = ''] = control
    if (word === undefined) break
    const read = readControl(lines, { at, word, name })
    nodes.push(read.node)
    at = read.next
  }
  return { nodes, next: at }
}

function readControl(
  lines: readonly string[],
  { at, word, name }: { at: number; word: string; name: string },
): { node: TemplateNode; next: number } {
  const first = readBlock(lines, at + 1)
  const hasElse = word === 'if' && wordOf(lines[first.next]) === 'else'
  const second = hasElse ? readBlock(lines, first.next + 1) : { nodes: [], next: first.next }
  if (wordOf(lines[second.next]) !== 'end') throw new Error(`line ${at + 1}: the block has no end`)
  const next = second.next + 1
  if (word === 'if') {
    const choose = (values: Values) => (isTrue(valueOf(values, name)) ? first : second).nodes
    return { node: (values) => choose(values).flatMap((node) => node(values)), next }
  }
  const each = (values: Values) => valueOf(values, name) as readonly Values[]
  return {
    node: (values) => each(values).flatMap((one) => first.nodes.flatMap((node) => node(one))),
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
  if (!Object.hasOwn(values, name)) throw new Error(`no setting ${name}`)
  return values[name]
}

/** Truth as in Go templates. */
function isTrue(value: unknown): boolean {
  return value !== false && value !== '' && value !== 0
}

/** Encodes JSON as Go does, which escapes these five characters. */
function renderJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
