// Renders the help of a role from the declaration of its commands.
import type { Command, Commands, Flag } from './command-line.ts'

const COLUMNS_MAX = 96

/** The usage of each command, such as `Usage: curtail link show CODE [--json]`. */
export function renderUsage(role: string, commands: Commands): string {
  return Object.entries(commands)
    .map(([name, command], at) => {
      const start = `${at === 0 ? 'Usage:' : '      '} curtail ${joinWords(role, name)}`
      const flags = Object.entries(command.flags ?? {}).map(renderFlag)
      return wrap(start, [...(command.operands ?? []), ...flags])
    })
    .join('')
}

/** What each command does, and the options of all of them. */
export function renderCommands(commands: Commands): string {
  const named = Object.entries(commands).filter(([name]) => name !== '')
  const abouts = named.map(([name, { about }]) => [name, about] as const)
  return section('Commands', abouts) + renderFlags(Object.values(commands))
}

/** The options of `commands`, each once. */
export function renderFlags(commands: readonly Command[]): string {
  const rows = new Map<string, string>()
  for (const { flags = {} } of commands) {
    for (const [name, flag] of Object.entries(flags)) {
      const allowed = flag.values === undefined ? '' : `: ${flag.values.join(', ')}`
      rows.set(labelOf(name, flag), flag.about + allowed)
    }
  }
  return section('Options', [...rows])
}

/** Words in aligned columns below a heading; empty without rows. */
export function section(
  heading: string,
  rows: readonly (readonly [name: string, about: string])[],
): string {
  if (rows.length === 0) return ''
  const width = Math.max(...rows.map(([name]) => name.length))
  const lines = rows.map(([name, about]) =>
    wrap(`  ${name.padEnd(width)} `, about.split(' '), width + 4),
  )
  return `\n${heading}:\n${lines.join('')}`
}

function renderFlag([name, flag]: readonly [string, Flag]): string {
  const label = labelOf(name, flag)
  if (flag.isRequired === true) return label
  return `[${label}]${flag.isMultiple === true ? '...' : ''}`
}

const labelOf = (name: string, { value }: Flag) =>
  value === undefined ? `--${name}` : `--${name}=${value}`

const joinWords = (...all: readonly string[]) => all.filter((word) => word !== '').join(' ')

/** A line of `words` after `start`; continuation lines are indented. */
function wrap(start: string, words: readonly string[], indent = 11): string {
  const lines = [start]
  for (const word of words) {
    const last = lines.at(-1) ?? ''
    if (last.length + 1 + word.length <= COLUMNS_MAX) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(' '.repeat(indent) + word)
  }
  return lines.map((line) => `${line}\n`).join('')
}
