// `curtail block`: the blocked targets, in the list that create and redirect pods read.
import { createReadStream } from 'node:fs'
import { parseArgs } from 'node:util'
import {
  addEntries,
  findBlocking,
  normalizeEntry,
  parseEntries,
  readEntries,
  removeEntries,
} from '../admin/change-blocked-targets.ts'
import { writeLines } from '../clients/write-output.ts'
import type { ConfigOf } from '../config/config.ts'
import { listSyncSettings } from '../kube/list-sync/settings.ts'
import {
  type ListKind,
  oneListRequired,
  withListTarget,
} from '../kube/operator-lists/open-list-target.ts'
import { controllerSettings } from '../kube/settings.ts'
import type { ListTarget } from '../process/list-target.ts'
import { defineRole, OperatorError, UsageError } from '../process/role.ts'
import { messageOf } from '../resilience/message-of.ts'
import { ENTRIES_MAX } from '../resolve/blocked/build-blocked-table.ts'
import { blockedTargetsSetting } from '../resolve/settings.ts'

const list: ListKind = {
  fileSetting: 'BLOCKED_TARGETS',
  objectSetting: 'BLOCKED_TARGETS_CONFIG_MAPS',
  kind: 'ConfigMap',
  dataKey: 'blocked-targets.txt',
  mode: 0o644,
}
const IMPORT_BYTES_MAX = 256 * 1024 * 1024
const STDIN = '-'
/** Faulty lines that are displayed. */
const FAULTS_SHOWN_MAX = 100

const settings = {
  BLOCKED_TARGETS: blockedTargetsSetting,
  BLOCKED_TARGETS_CONFIG_MAPS: listSyncSettings.BLOCKED_TARGETS_CONFIG_MAPS,
  KUBECONFIG: controllerSettings.KUBECONFIG,
  KUBERNETES_SERVICE_HOST: controllerSettings.KUBERNETES_SERVICE_HOST,
} as const

/** `block add|remove|list|import`. */
export const role = defineRole({
  usage: 'block add|remove ENTRY... | list [--json] [--match=URL] | import FILE|- [--skip-faulty]',
  about:
    'Links to blocked targets are neither created nor redirected. An ENTRY is a host, which\n' +
    'includes its subdomains (evil.example), or the start of URLs on one host\n' +
    '(sites.example/bad). add and remove change the list. list prints its entries or, with\n' +
    '--match, those that block the URL. import adds the entries of a file, one per line, and\n' +
    'removes none; if a line is faulty, it reports the line and changes nothing, unless\n' +
    '--skip-faulty is given. Pods reload the list within seconds. New entries are added to the\n' +
    'first of the ConfigMaps that have space; the command must be allowed to get and update them.',
  settings,
  dependent: [oneListRequired(list, settings)],
  run: async ({ config, args }) => {
    const request = parseBlockArgs(args)
    await withList(config, (target) => runVerb(target, request))
    return { exitCode: 0 }
  },
})

function withList(
  config: ConfigOf<typeof settings>,
  use: (target: ListTarget) => Promise<void>,
): Promise<void> {
  const { BLOCKED_TARGETS: path, BLOCKED_TARGETS_CONFIG_MAPS: names, ...access } = config
  return withListTarget(list, { path, names, ...access }, use)
}

type BlockRequest =
  | { readonly verb: 'add' | 'remove'; readonly entries: readonly string[] }
  | { readonly verb: 'list'; readonly json: boolean; readonly match: string | undefined }
  | { readonly verb: 'import'; readonly file: string; readonly isFaultySkipped: boolean }

const optionsOf = { add: [], remove: [], list: ['json', 'match'], import: ['skip-faulty'] } as const
type Verb = keyof typeof optionsOf

/** Throws UsageError. */
function parseBlockArgs(args: readonly string[]): BlockRequest {
  const { values, positionals } = readArgs(args)
  const [verb = '', ...operands] = positionals
  if (!isVerb(verb)) {
    const given = JSON.stringify(verb)
    throw new UsageError(`block requires add, remove, list or import: it is ${given}`)
  }
  const options: readonly string[] = optionsOf[verb]
  const unknown = Object.keys(values).find((option) => !options.includes(option))
  if (unknown !== undefined) throw new UsageError(`block ${verb} does not take --${unknown}`)
  const count = `${operands.length} are given`
  if (verb === 'list') {
    if (operands.length > 0) throw new UsageError(`block list takes only options: ${count}`)
    return { verb, json: values.json === true, match: values.match }
  }
  if (verb === 'import') {
    const [file, ...rest] = operands
    if (file === undefined || rest.length > 0)
      throw new UsageError(`block import requires one FILE, or -: ${count}`)
    return { verb, file, isFaultySkipped: values['skip-faulty'] === true }
  }
  if (operands.length === 0) throw new UsageError(`block ${verb} requires at least one ENTRY`)
  return { verb, entries: operands.map(parseEntry) }
}

function readArgs(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        json: { type: 'boolean' },
        match: { type: 'string' },
        'skip-faulty': { type: 'boolean' },
      },
      allowPositionals: true,
    })
  } catch (error) {
    throw new UsageError(`block takes --json, --match and --skip-faulty: ${messageOf(error)}`)
  }
}

function isVerb(name: string): name is Verb {
  return Object.hasOwn(optionsOf, name)
}

function parseEntry(given: string): string {
  const entry = normalizeEntry(given)
  if (typeof entry === 'string') return entry
  const fault = entry?.fault ?? 'is empty'
  throw new UsageError(
    `the ENTRY ${JSON.stringify(given)} ${fault}; allowed are evil.example and sites.example/bad`,
  )
}

async function runVerb(target: ListTarget, request: BlockRequest): Promise<void> {
  switch (request.verb) {
    case 'add':
      return writeLines(process.stdout, await addAll(target, request.entries))
    case 'remove':
      return writeLines(process.stdout, await removeAll(target, request.entries))
    case 'import':
      return importFile(target, request)
    case 'list':
      return printList(target, request)
  }
}

/** Adds the entries; returns the counts as a line. */
async function addAll(target: ListTarget, entries: readonly string[]): Promise<string> {
  const all = new Set(entries).size
  let added = 0 // also by an earlier attempt that was in conflict
  await target.update((documents) => {
    const change = addEntries(documents, entries)
    const fail = (cause: string) => new OperatorError(`Cannot add entries: ${cause}`)
    if (change === undefined) throw fail(target.whenFull)
    if (change.total > ENTRIES_MAX)
      throw fail(`the list would have ${change.total}: pods read at most ${ENTRIES_MAX}`)
    added = Math.max(added, change.added)
    return { contents: change.contents, result: undefined }
  })
  return `${countOf(added)} added, ${all - added} already in the list\n`
}

async function removeAll(target: ListTarget, entries: readonly string[]): Promise<string> {
  const wanted = new Set(entries)
  const removed = new Set<string>() // also by an earlier attempt that was in conflict
  await target.update((documents) => {
    const { contents, found } = removeEntries(documents, wanted)
    for (const entry of found) removed.add(entry)
    return { contents, result: undefined }
  })
  const missing = [...wanted].filter((entry) => !removed.has(entry))
  const rest = missing.length === 0 ? '' : `, not in the list: ${missing.join(', ')}`
  return `${countOf(removed.size)} removed${rest}\n`
}

async function importFile(
  target: ListTarget,
  { file, isFaultySkipped }: Extract<BlockRequest, { verb: 'import' }>,
): Promise<void> {
  const { entries, faulty } = parseEntries(await readImport(file))
  const shown = file === STDIN ? 'stdin' : file
  reportFaults(faulty.map(({ number, fault }) => `${shown}:${number}: the line ${fault}`))
  if (faulty.length > 0 && !isFaultySkipped) {
    throw new OperatorError(
      `Cannot import ${shown}: ${faulty.length} lines are faulty, and the list is not changed; ` +
        'correct them, or use --skip-faulty',
    )
  }
  const skipped = faulty.length === 0 ? '' : `${faulty.length} faulty lines skipped\n`
  await writeLines(process.stdout, (await addAll(target, entries)) + skipped)
}

/** Throws OperatorError. */
async function readImport(file: string): Promise<string> {
  try {
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of file === STDIN ? process.stdin : createReadStream(file)) {
      chunks.push(chunk as Buffer)
      bytes += (chunk as Buffer).length
      if (bytes > IMPORT_BYTES_MAX) throw new Error(`more than ${IMPORT_BYTES_MAX} bytes`)
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch (error) {
    throw new OperatorError(`Cannot read ${file}: ${messageOf(error)}`)
  }
}

async function printList(
  target: ListTarget,
  { json, match }: Extract<BlockRequest, { verb: 'list' }>,
): Promise<void> {
  const documents = await target.read()
  if (match !== undefined) {
    const entries = findBlocking(documents, match)
    if (entries === undefined)
      throw new UsageError(`--match must be an http(s) URL: it is ${JSON.stringify(match)}`)
    const blocked = entries.length > 0
    const line = blocked ? `blocked by ${entries.join(', ')}` : 'not blocked'
    const output = json ? JSON.stringify({ url: match, blocked, entries }) : line
    return writeLines(process.stdout, `${output}\n`)
  }
  const { entries, faulty } = readEntries(documents)
  reportFaults(
    faulty.map(
      ({ document, number, fault }) => `${document}:${number}: ignored, the line ${fault}`,
    ),
  )
  const lines = entries.map((entry) => `${entry}\n`).join('')
  await writeLines(process.stdout, json ? `${JSON.stringify(entries)}\n` : lines)
}

function reportFaults(faults: readonly string[]): void {
  const more = faults.length - FAULTS_SHOWN_MAX
  const shown = faults.slice(0, FAULTS_SHOWN_MAX)
  if (more > 0) shown.push(`and ${more} more faulty lines`)
  for (const line of shown) process.stderr.write(`curtail: ${line}\n`)
}

function countOf(entries: number): string {
  return entries === 1 ? '1 entry' : `${entries} entries`
}
