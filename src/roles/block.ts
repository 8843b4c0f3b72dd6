// `curtail block`: the blocked targets, in the list that create and redirect pods read.
import { createReadStream } from 'node:fs'
import {
  addEntries,
  findBlocking,
  normalizeEntry,
  parseEntries,
  readEntries,
  removeEntries,
} from '../admin/change-blocked-targets.ts'
import { type ChangeReporter, createChangeReporter } from '../clients/report-action.ts'
import { writeLines } from '../clients/write-output.ts'
import type { ConfigOf } from '../config/config.ts'
import { clientSettings } from '../http/admin/client-settings.ts'
import { checkOperator, operatorSetting } from '../http/admin/operator-setting.ts'
import { type ListAction, SUBJECT_LENGTH_MAX, SUBJECTS_MAX } from '../http/admin/post-action.ts'
import { listSyncSettings } from '../kube/list-sync/settings.ts'
import {
  type ListKind,
  oneListRequired,
  withListTarget,
} from '../kube/operator-lists/open-list-target.ts'
import { controllerSettings } from '../kube/settings.ts'
import { jsonFlag, operatorFlag, type Parsed } from '../process/command-line.ts'
import { renderJsonLines } from '../process/json-lines.ts'
import type { ListDocument, ListTarget } from '../process/list-target.ts'
import { defineRole, OperatorError, UsageError } from '../process/role.ts'
import { messageOf } from '../resilience/message-of.ts'
import { ENTRIES_MAX } from '../resolve/blocked/build-blocked-table.ts'
import { blockedTargetsSetting } from '../resolve/settings.ts'

const listKind: ListKind = {
  fileSetting: 'BLOCKED_TARGETS',
  objectSetting: 'BLOCKED_TARGETS_CONFIG_MAPS',
  kind: 'ConfigMap',
  dataKey: 'blocked-targets.txt',
  mode: 0o644,
}
const IMPORT_BYTES_MAX = 256 * 1024 * 1024
const STDIN = '-'
/** Maximum number of faulty lines that are displayed. */
const FAULTS_SHOWN_MAX = 100

const settings = {
  BLOCKED_TARGETS: blockedTargetsSetting,
  BLOCKED_TARGETS_CONFIG_MAPS: listSyncSettings.BLOCKED_TARGETS_CONFIG_MAPS,
  KUBECONFIG: controllerSettings.KUBECONFIG,
  KUBERNETES_SERVICE_HOST: controllerSettings.KUBERNETES_SERVICE_HOST,
  ...clientSettings,
  OPERATOR: operatorSetting,
} as const

const sharedFlags = { ...operatorFlag, ...jsonFlag } as const
const commands = {
  add: { about: 'adds entries to the list', operands: ['ENTRY...'], flags: sharedFlags },
  remove: { about: 'removes entries from the list', operands: ['ENTRY...'], flags: sharedFlags },
  list: {
    about: 'prints the entries, or those that block a URL',
    flags: { match: { about: 'entries that block this URL', value: 'URL' }, ...sharedFlags },
  },
  import: {
    about: 'adds the entries of a file, one per line, and removes none',
    operands: ['FILE|-'],
    flags: { 'skip-faulty': { about: 'skips faulty lines' }, ...sharedFlags },
  },
} as const
type Arguments = Parsed<typeof commands>

/** `block add|remove|list|import`. */
export const role = defineRole({
  name: 'block',
  about:
    'Links to blocked targets are neither created nor redirected. An ENTRY is a host, which\n' +
    'includes its subdomains (evil.example), or the start of URLs on one host\n' +
    '(sites.example/bad). add and remove change the list. list prints its entries or, with\n' +
    '--match, those that block the URL. import adds the entries of a file, one per line, and\n' +
    'removes none; if a line is faulty, it reports the line and changes nothing, unless\n' +
    '--skip-faulty is given. The list is the file at BLOCKED_TARGETS. The service must be\n' +
    'started with the same setting; it applies a change within 5 seconds. On Kubernetes, it is\n' +
    'in ConfigMaps: new entries are added to the first one that has space, and the command must\n' +
    'be allowed to get and update them. A change is reported to the audit log of the admin API,\n' +
    'with the name of the operator, by default OPERATOR.',
  commands,
  settings,
  dependent: [oneListRequired(listKind, settings)],
  check: parseBlockArgs,
  run: async ({ config, args }) => {
    const { operator = config.OPERATOR } = args.flags
    const request = parseBlockArgs(args)
    const api = { url: config.ADMIN_URL, token: config.ADMIN_TOKEN, operator }
    const change = createChangeReporter<ListAction>(api, (lines) => process.stderr.write(lines))
    await withList(config, (target) => runVerb({ target, change }, request))
    return { exitCode: 0 }
  },
})

function withList(
  config: ConfigOf<typeof settings>,
  use: (target: ListTarget) => Promise<void>,
): Promise<void> {
  const { BLOCKED_TARGETS: path, BLOCKED_TARGETS_CONFIG_MAPS: names, ...access } = config
  return withListTarget(listKind, { path, names, ...access }, use)
}

/** The list, and how to change it. */
interface BlockList {
  readonly target: ListTarget
  readonly change: ChangeReporter<ListAction>
}

type BlockRequest = { readonly json: boolean } & (
  | { readonly verb: 'add' | 'remove'; readonly entries: ReadonlySet<string> }
  | { readonly verb: 'list'; readonly match: string | undefined }
  | { readonly verb: 'import'; readonly file: string; readonly isFaultySkipped: boolean }
)

/** Throws UsageError. */
function parseBlockArgs(args: Arguments): BlockRequest {
  const { json, operator } = args.flags
  checkOperator(operator)
  switch (args.command) {
    case 'list':
      return { verb: args.command, json, match: args.flags.match }
    case 'import': {
      const { 'skip-faulty': isFaultySkipped } = args.flags
      return { verb: args.command, json, file: args.operands[0] ?? '', isFaultySkipped }
    }
    case 'add':
    case 'remove':
      return { verb: args.command, json, entries: new Set(args.operands.map(parseEntry)) }
  }
}

function parseEntry(given: string): string {
  const entry = normalizeEntry(given)
  if (typeof entry === 'string') return entry
  const fault = entry?.fault ?? 'is empty'
  throw new UsageError(
    `the ENTRY ${JSON.stringify(given)} ${fault}; allowed are evil.example and sites.example/bad`,
  )
}

async function runVerb(list: BlockList, request: BlockRequest): Promise<void> {
  switch (request.verb) {
    case 'add': {
      const added = await addAll(list, { verb: 'add', entries: request.entries })
      return writeLines(
        process.stdout,
        request.json ? renderJsonLines([added]) : renderAdded(added),
      )
    }
    case 'remove': {
      const removed = await removeAll(list, request.entries)
      const output = request.json ? renderJsonLines([removed]) : renderRemoved(removed)
      return writeLines(process.stdout, output)
    }
    case 'import':
      return importFile(list, request)
    case 'list':
      return printList(list.target, request)
  }
}

/** The first entries, as the audit log shows them. */
function shown(entries: ReadonlySet<string>): string[] {
  return [...entries].slice(0, SUBJECTS_MAX).map((entry) => entry.slice(0, SUBJECT_LENGTH_MAX))
}

interface Added {
  readonly added: number
  readonly present: number
}

const renderAdded = ({ added, present }: Added) =>
  `${countOf(added)} added, ${present} already in the list\n`

async function addAll(
  { target, change }: BlockList,
  { verb, entries }: { readonly verb: 'add' | 'import'; readonly entries: ReadonlySet<string> },
): Promise<Added> {
  let added = 0 // including those of earlier attempts with a conflict
  const add = (documents: readonly ListDocument[]) => {
    const changed = addEntries(documents, entries)
    const fail = (cause: string) => new OperatorError(`Cannot add entries: ${cause}`)
    if (changed === undefined) throw fail(target.whenFull)
    if (changed.total > ENTRIES_MAX)
      throw fail(`the list would have ${changed.total}: pods read at most ${ENTRIES_MAX}`)
    added = Math.max(added, changed.added)
    return { contents: changed.contents, result: undefined }
  }
  await change(
    () => ({ action: `block-${verb}`, targets: shown(entries), count: added }),
    () => target.update(add),
  )
  return { added, present: entries.size - added }
}

interface Removed {
  readonly removed: number
  /** Entries that are not in the list. */
  readonly missing: readonly string[]
}

function renderRemoved({ removed, missing }: Removed): string {
  const rest = missing.length === 0 ? '' : `, not in the list: ${missing.join(', ')}`
  return `${countOf(removed)} removed${rest}\n`
}

async function removeAll(
  { target, change }: BlockList,
  wanted: ReadonlySet<string>,
): Promise<Removed> {
  const removed = new Set<string>() // including those of earlier attempts with a conflict
  const remove = (documents: readonly ListDocument[]) => {
    const { contents, found } = removeEntries(documents, wanted)
    for (const entry of found) removed.add(entry)
    return { contents, result: undefined }
  }
  await change(
    () => ({ action: 'block-remove', targets: shown(wanted), count: removed.size }),
    () => target.update(remove),
  )
  const missing = [...wanted].filter((entry) => !removed.has(entry))
  return { removed: removed.size, missing }
}

async function importFile(
  list: BlockList,
  { verb, file, isFaultySkipped, json }: Extract<BlockRequest, { verb: 'import' }>,
): Promise<void> {
  const { entries, faulty } = parseEntries(await readImport(file))
  const name = file === STDIN ? 'stdin' : file
  reportFaults(faulty.map(({ number, fault }) => `${name}:${number}: the line ${fault}`))
  if (faulty.length > 0 && !isFaultySkipped) {
    throw new OperatorError(
      `Cannot import ${name}: ${faulty.length} lines are faulty, and the list is not changed; ` +
        'correct them, or use --skip-faulty',
    )
  }
  const skipped = faulty.length === 0 ? '' : `${faulty.length} faulty lines skipped\n`
  const added = await addAll(list, { verb, entries })
  const result = { ...added, faulty: faulty.length }
  const output = json ? renderJsonLines([result]) : renderAdded(added) + skipped
  await writeLines(process.stdout, output)
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
  const output = json
    ? renderJsonLines([...entries].map((entry) => ({ entry })))
    : [...entries].map((entry) => `${entry}\n`).join('')
  await writeLines(process.stdout, output)
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
