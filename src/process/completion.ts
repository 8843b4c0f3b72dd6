// Renders the scripts that complete the command line in bash and zsh, from the declarations that
// are also used to parse the arguments. Both shells use the same function, which prints the words
// that are possible in a context, such as `link list`, or `link list --state` for the values of an
// option.
import { renderCommands, renderUsage } from './command-help.ts'
import type { Command, Commands } from './command-line.ts'
import { bashScript, zshScript } from './completion-scripts.ts'

/** The shells, as commands of `completion`. */
export const completionCommands = {
  bash: { about: 'for bash: source <(curtail completion bash)' },
  zsh: { about: 'for zsh: source <(curtail completion zsh)' },
} as const satisfies Commands

/** The output of `completion --help`. */
export const completionHelp =
  `${renderUsage('completion', completionCommands)}\n` +
  'Prints the script that completes the roles, commands and options of curtail in a shell.\n' +
  'Source it, or store it where the shell finds completions, such as\n' +
  '~/.local/share/bash-completion/completions/curtail, or _curtail in a folder of $fpath.\n' +
  renderCommands(completionCommands)

/** A role, as the scripts complete it. */
export interface DescribedRole {
  readonly name: string
  readonly about: string
  readonly commands: Commands
}

const scripts = { bash: bashScript, zsh: zshScript } as const

/** The script for a shell. */
export function renderCompletion(
  shell: keyof typeof completionCommands,
  roles: readonly DescribedRole[],
): string {
  const contexts = [
    renderContext('', [
      ...roles.map(({ name, about }) => [name, about] as const),
      ['--help', HELP],
      ['--version', 'prints the version'],
    ]),
    ...roles.flatMap(contextsOf),
  ]
  return [
    ...scripts[shell].header,
    '# Prints the words that are possible in the context $1, one per line, as WORD:DESCRIPTION;',
    '# the word @file means all files. Returns 1 in an unknown context.',
    '_curtail_words() {',
    '  case $1 in',
    ...contexts,
    '    *) return 1 ;;',
    '  esac',
    '}',
    ...scripts[shell].body,
    '',
  ].join('\n')
}

const HELP = 'prints the arguments and settings'
const FILE = '@file'

type Word = readonly [word: string, about: string]

function contextsOf({ name, commands }: DescribedRole): string[] {
  const words = Object.entries(commands).flatMap(([command, { about }]): Word[] =>
    command === '' ? [] : [[command, about]],
  )
  const own = commands['']
  const ofRole = renderContext(name, [...words, ...wordsOf(own), ['--help', HELP]])
  const ofCommands = Object.entries(commands).flatMap(([command, declared]) => {
    const path = command === '' ? name : `${name} ${command}`
    const context = renderContext(path, [...wordsOf(declared), ['--help', HELP]])
    return [...(command === '' ? [] : [context]), ...valuesOf(path, declared)]
  })
  return [ofRole, ...ofCommands]
}

function wordsOf({ flags = {}, operands = [] }: Command = { about: '' }): Word[] {
  const files = operands.some((operand) => operand.includes('FILE')) ? [[FILE, ''] as const] : []
  return [
    ...Object.entries(flags).map(([name, { about }]) => [`--${name}`, about] as const),
    ...files,
  ]
}

/** A context for each option that has a value. */
function valuesOf(path: string, { flags = {} }: Command): string[] {
  return Object.entries(flags).flatMap(([name, { value, values = [] }]) => {
    if (value === undefined) return []
    const words: Word[] = value.startsWith('FILE') ? [[FILE, '']] : values.map((one) => [one, ''])
    return [renderContext(`${path} --${name}`, words)]
  })
}

function renderContext(context: string, words: readonly Word[]): string {
  const lines = words.map(([word, about]) => quote(about === '' ? word : `${word}:${about}`))
  const output = words.length === 0 ? ':' : `printf '%s\\n' ${lines.join(' ')}`
  return `    ${quote(context)}) ${output} ;;`
}

const quote = (word: string) => `'${word.replaceAll("'", String.raw`'\''`)}'`
