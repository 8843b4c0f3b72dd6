// Parses the code blocks of a runbook: shell commands, each split into words, and PromQL
// expressions. Runs nothing.

/** A runbook. */
export interface Page {
  readonly name: string
  readonly text: string
}

/** Values in tests of the variables that the runbooks use. */
const variables: readonly (readonly [RegExp, string])[] = [
  [/\$NS\b/g, 'store'],
  [/\$R\b/g, 'shop-curtail'],
]
const programs = /^(cd|curl|export|helm|k6\/k6|kubectl|nodetool|npx|openssl|redis-cli|umask)(?=\s)/
/** A fenced block without a language. */
const block = /^```\n([^]*?)^```$/gm
/** Commands that only filter the output of the command before them. */
const filters = /^(base64|grep|head|sed|sort|tail|uniq)\b/

/** Commands in page order; those of a pipe, after `--` or in `$(…)` are separate entries. */
export function commandsOf(page: Page): readonly (readonly string[])[] {
  return [...linesOf(page), ...spansOf(page).map(fillIn)].flatMap((line) => {
    if (!programs.test(line)) return []
    const [bare = ''] = line.replace(/\s+#.*$|\s+&$/g, '').split(/\s+&&\s+/)
    const inner = /\$\((.*)\)/.exec(bare)?.[1]
    const pipe = [...(inner ?? bare).split(/\s+\|\s+/), ...(inner === undefined ? [] : [bare])]
    const calls = pipe.flatMap((call) => {
      const behind = /\s--\s+(nodetool|redis-cli)(.*)$/.exec(call)
      return behind === null ? [call] : [call, `${behind[1] ?? ''}${behind[2] ?? ''}`]
    })
    return calls.filter((call) => !filters.test(call)).map(wordsOf)
  })
}

/** Commands of the fenced blocks in page order, unchanged. */
export function scriptsOf(page: Page): readonly string[] {
  return bareLinesOf(page).filter((line) => programs.test(line))
}

/** PromQL expressions of the fenced blocks. */
export function expressionsOf(page: Page): readonly string[] {
  return linesOf(page).filter((line) => !programs.test(line))
}

/** Lines of the fenced blocks, with the variables filled in. */
function linesOf(page: Page): readonly string[] {
  return bareLinesOf(page).map(fillIn)
}

function bareLinesOf({ text }: Page): readonly string[] {
  const blocks = [...text.matchAll(block)].map(([, inner = '']) => inner)
  return blocks.flatMap((inner) => inner.split('\n')).filter((line) => line.trim() !== '')
}

/** Inline code within sentences, unchanged. */
function spansOf({ text }: Page): readonly string[] {
  return [...text.replaceAll(block, '').matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span)
}

function fillIn(line: string): string {
  return variables.reduce((filled, [name, value]) => filled.replaceAll(name, value), line.trim())
}

/** Splits into words like a shell, and removes quotes. */
function wordsOf(call: string): readonly string[] {
  const words = call.match(/(?:[^\s'"]+|'[^']*'|"[^"]*")+/g) ?? []
  return words.map((word) => word.replaceAll(/['"]/g, ''))
}
