// The commands in the documents, the samples and the charts that write objects of a cluster: found
// in the files themselves, so that a test runs a new command as soon as it is documented.
import { glob, readFile } from 'node:fs/promises'
import { INSTALL_CRDS } from './helm-shell.ts'

const documents = [
  'README.md',
  'docs/**/*.md',
  'k8s/**/*.{md,yaml}',
  'charts/**/*.{md,txt,tpl,yaml}',
]

/** Commands that the test of upgrades does not run, and what runs them instead. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [/^helm test /, 'creates only a pod: test/cluster/release.test.ts'],
  [new RegExp(`^${INSTALL_CRDS}$`), 'helm-shell.ts runs it, before all tests'],
  [/^kubectl set image deployment\/ratelimit /, "Istio's object: test/cluster/istio.test.ts"],
  [/^kubectl delete crd /, 'chart-upgrade.test.ts deletes the CRDs after all other tests'],
  [/^helm template .* \| kubectl apply /, 'chart-upgrade.test.ts creates the CRDs with it'],
  [
    /^kubectl -n shop delete secret shop-curtail-code-secret$/,
    'follows an uninstall: chart-upgrade.test.ts, with another release',
  ],
  [
    /^kubectl -n shop delete pvc data-shop-curtail-cassandra-0$/,
    'follows an uninstall: no test runs it, but test/cluster/notes.test.ts deletes the same claim',
  ],
  [
    /^kubectl -n %\[2\]s create secret generic %\[1\]s --from-file=%\[3\]s=FILE$/,
    'printed in an error: chart-upgrade.test.ts runs it as printed, with a backup as FILE',
  ],
  [
    /^helm -n %\[1\]s rollback %\[2\]s REVISION$/,
    'printed in an error: chart-upgrade.test.ts runs it as printed, with a deployed REVISION',
  ],
  [
    /^kubectl -n %\[4\]s delete statefulset %\[1\]s --cascade=orphan$/,
    'printed in an error: chart-upgrade.test.ts runs it with background instead of orphan, which ' +
      'needs a garbage collector',
  ],
]

const PROGRAM = /^(?:[A-Z_]+=\S+ )*(?:(?:npx )?curtail|helm|kubectl) /
/** Verbs of kubectl and Helm that change no object. */
const READING = new RegExp(
  '^(api-resources|config|describe|env|exec|explain|get|history|kustomize|list|logs|package|' +
    'port-forward|pull|repo|rollout (history|status)|show|status|template|top|version|wait)\\b',
)
/** The roles of the command line that write into objects. */
const WRITING_ROLE = /\bcurtail (?:-n \S+ )?(key (create|revoke)|block (add|import|remove)) [^[…]*$/
/** They write into files instead. */
const INTO_FILES = /^(API_KEYS|BLOCKED_TARGETS)=/

/** The commands that write, each once. */
export interface WritingCommands {
  readonly commands: readonly string[]
  /** Those of the exceptions. */
  readonly elsewhere: readonly string[]
  /** The exceptions that match no command. */
  readonly unusedExceptions: readonly string[]
}

/** Reads the commands from the files. */
export async function writingCommands(): Promise<WritingCommands> {
  const found = new Set<string>()
  for await (const path of glob(documents))
    for (const command of commandsOf(path, await readFile(path, 'utf8')))
      if (isWriting(command)) found.add(command)
  const all = [...found].sort()
  const isElsewhere = (command: string) => elsewhere.some(([what]) => what.test(command))
  const unused = elsewhere.filter(([what]) => !all.some((command) => what.test(command)))
  return {
    commands: all.filter((command) => !isElsewhere(command)),
    elsewhere: all.filter(isElsewhere),
    unusedExceptions: unused.map(([what]) => what.source),
  }
}

/** The commands in the blocks and sentences of a file, or in its comments and messages. */
function commandsOf(path: string, source: string): readonly string[] {
  const content = source.replaceAll('{{ $in }}', '-n $NS').replaceAll(/ *\\\n[# ]*/g, ' ')
  const block = /^ *```\w*\n([^]*?)^ *```$/gm
  const blocks = path.endsWith('.md')
    ? [...content.matchAll(block)].map(([, inner = '']) => inner)
    : (content.replaceAll('\\n', '\n').match(/^(?:# )? {2,}\S.*$/gm) ?? []).map((line) =>
        line.replace(/^#/, ''),
      )
  const spans = [...content.replaceAll(block, '').matchAll(/`([^`\n]+)`/g)]
  return [...blocks.flatMap((inner) => inner.split('\n')), ...spans.map(([, span = '']) => span)]
    .flatMap((line) => line.replace(/\s+(#.*|&)$/, '').split(' && '))
    .map((line) => line.trim().replace(/^\$ /, '').replaceAll('\\|', '|'))
    .filter((line) => PROGRAM.test(`${line} `))
}

function isWriting(command: string): boolean {
  if (WRITING_ROLE.test(command)) return !INTO_FILES.test(command)
  return command.split(' | ').some((call) => {
    const [, , verb = ''] = /^(helm|kubectl)(?: -n \S+)? (.*)$/.exec(call) ?? []
    return verb !== '' && !verb.startsWith('curtail ') && !READING.test(verb) && hasObject(call)
  })
}

/** Whether a command names an object; otherwise a sentence only names the command. */
function hasObject(call: string): boolean {
  const operands = call.split(' ').filter((word) => word === '-' || !word.startsWith('-'))
  return operands.length > 2 + (/^kubectl (delete|rollout) /.test(call) ? 1 : 0)
}
