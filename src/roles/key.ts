// `curtail key`: the API keys of clients, in the list that create pods read.
import { parseArgs } from 'node:util'
import { writeLines } from '../clients/write-output.ts'
import type { ConfigOf } from '../config/config.ts'
import { API_KEY_NAME, CREATOR_ID_MAX } from '../create/api-keys.ts'
import {
  addApiKey,
  generateApiKey,
  generateCreatorId,
  listApiKeys,
  revokeApiKeys,
} from '../create/change-api-keys.ts'
import { apiKeySettings } from '../create/settings.ts'
import {
  type ListKind,
  oneListRequired,
  withListTarget,
} from '../kube/operator-lists/open-list-target.ts'
import { listSyncSettings } from '../kube/list-sync/settings.ts'
import { controllerSettings } from '../kube/settings.ts'
import { type ListTarget, UnknownOutcomeError } from '../process/list-target.ts'
import { defineRole, OperatorError, UsageError } from '../process/role.ts'
import { renderTable } from '../process/table.ts'
import { messageOf } from '../resilience/message-of.ts'
import { utcTimeOf } from '../transfer/utc-time.ts'

const list: ListKind = {
  fileSetting: 'API_KEYS',
  objectSetting: 'API_KEYS_SECRET',
  kind: 'Secret',
  dataKey: 'api-keys.ndjson',
  mode: 0o600,
}

const settings = {
  API_KEYS: apiKeySettings.API_KEYS,
  API_KEYS_SECRET: listSyncSettings.API_KEYS_SECRET,
  KUBECONFIG: controllerSettings.KUBECONFIG,
  KUBERNETES_SERVICE_HOST: controllerSettings.KUBERNETES_SERVICE_HOST,
} as const

/** `key create|list|revoke`. */
export const role = defineRole({
  usage: 'key create NAME [--creator=ID] [--expires=DATE] | list [--json] | revoke NAME...',
  about:
    'create generates an API key, prints it on stdout, and adds its hash to the list; the key\n' +
    'cannot be displayed later. The links that are created with it have the creator ID, by\n' +
    'default a random number. DATE is such as 2027-01-31 or 2027-01-31T12:00:00Z; without it,\n' +
    'the key does not expire. list prints the keys without their hashes. revoke removes keys,\n' +
    'also their copies under other names. Pods reload the list within seconds. A new key is\n' +
    'added to the first of the Secrets that has space; the command must be allowed to get and\n' +
    'update them.',
  settings,
  dependent: [oneListRequired(list, settings)],
  run: async ({ config, args }) => {
    const request = parseKeyArgs(args, Date.now())
    await withList(config, (target) => runVerb(target, request))
    return { exitCode: 0 }
  },
})

function withList(
  config: ConfigOf<typeof settings>,
  use: (target: ListTarget) => Promise<void>,
): Promise<void> {
  const { API_KEYS: path, API_KEYS_SECRET: names, ...access } = config
  return withListTarget(list, { path, names, ...access }, use)
}

type KeyRequest =
  | {
      readonly verb: 'create'
      readonly name: string
      readonly creatorId: bigint
      readonly expiresAt: string | undefined
    }
  | { readonly verb: 'list'; readonly json: boolean }
  | { readonly verb: 'revoke'; readonly names: readonly string[] }

const optionsOf = { create: ['creator', 'expires'], list: ['json'], revoke: [] } as const
const operandsOf = {
  create: { allowed: 'one NAME', min: 1, max: 1 },
  list: { allowed: 'no NAME', min: 0, max: 0 },
  revoke: { allowed: 'at least one NAME', min: 1, max: Infinity },
} as const
type Verb = keyof typeof optionsOf

/** Throws UsageError. */
function parseKeyArgs(args: readonly string[], nowMs: number): KeyRequest {
  const { values, positionals } = readArgs(args)
  const [verb = '', ...names] = positionals
  if (!isVerb(verb))
    throw new UsageError(`key requires create, list or revoke: it is ${JSON.stringify(verb)}`)
  const options: readonly string[] = optionsOf[verb]
  const unknown = Object.keys(values).find((option) => !options.includes(option))
  if (unknown !== undefined) throw new UsageError(`key ${verb} does not take --${unknown}`)
  const { allowed, min, max } = operandsOf[verb]
  if (names.length < min || names.length > max)
    throw new UsageError(`key ${verb} requires ${allowed}: ${names.length} are given`)
  for (const name of names) checkName(name)
  if (verb === 'list') return { verb, json: values.json === true }
  if (verb === 'revoke') return { verb, names }
  return {
    verb,
    name: names[0] ?? '',
    creatorId: parseCreator(values.creator),
    expiresAt: parseExpiry(values.expires, nowMs),
  }
}

function readArgs(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        creator: { type: 'string' },
        expires: { type: 'string' },
        json: { type: 'boolean' },
      },
      allowPositionals: true,
    })
  } catch (error) {
    throw new UsageError(`key takes --creator=ID, --expires=DATE and --json: ${messageOf(error)}`)
  }
}

function isVerb(name: string): name is Verb {
  return Object.hasOwn(optionsOf, name)
}

function checkName(name: string): void {
  if (API_KEY_NAME.test(name)) return
  const allowed = '1 to 63 of the characters a-z, 0-9 and -, the latter not at an end'
  throw new UsageError(`NAME must have ${allowed}: it is ${JSON.stringify(name)}`)
}

function parseCreator(creator: string | undefined): bigint {
  if (creator === undefined) return generateCreatorId()
  const id = /^[1-9]\d{0,18}$/.test(creator) ? BigInt(creator) : 0n
  if (id >= 1n && id <= CREATOR_ID_MAX) return id
  const allowed = `an integer from 1 to ${CREATOR_ID_MAX}`
  throw new UsageError(`--creator must be ${allowed}: it is ${JSON.stringify(creator)}`)
}

/** The time in the list: RFC 3339 in UTC, with seconds. */
function parseExpiry(expires: string | undefined, nowMs: number): string | undefined {
  if (expires === undefined) return undefined
  const isDate = /^\d{4}-\d\d-\d\d$/.test(expires)
  const time = utcTimeOf(isDate ? `${expires}T00:00:00Z` : expires)
  if (time !== undefined && Date.parse(time) > nowMs) return time.replace(/\.\d+Z$/, 'Z')
  const allowed = 'a date or RFC 3339 time in the future, such as 2027-01-31T12:00:00Z'
  throw new UsageError(`--expires must be ${allowed}: it is ${JSON.stringify(expires)}`)
}

async function runVerb(target: ListTarget, request: KeyRequest): Promise<void> {
  if (request.verb === 'create') await createKey(target, request)
  else if (request.verb === 'revoke') await revokeKeys(target, request.names)
  else await printKeys(target, request.json)
}

async function createKey(
  target: ListTarget,
  { name, creatorId, expiresAt }: Extract<KeyRequest, { verb: 'create' }>,
): Promise<void> {
  const key = generateApiKey()
  const fail = (cause: string) => new OperatorError(`Cannot create the key ${name}: ${cause}`)
  let isWritten = false
  try {
    await target.update((documents) => {
      const contents = addApiKey(documents, { name, creatorId, expiresAt, key })
      if (contents === 'exists') throw fail('a key has this name; use another one, or revoke it')
      if (contents === 'full') throw fail(target.whenFull)
      if (contents === 'unusable') throw fail('the list has too many keys; revoke some')
      return { contents, result: undefined }
    })
    isWritten = true
    await writeLines(process.stdout, `${key}\n`)
  } catch (error) {
    if (!isWritten && !(error instanceof UnknownOutcomeError)) throw error
    throw new OperatorError(
      `${messageOf(error)}: the list may contain the key ${name}, whose value is lost: ` +
        `run \`key revoke ${name}\`, then create it`,
    )
  }
  const expiry = expiresAt === undefined ? 'does not expire' : `expires at ${expiresAt}`
  process.stderr.write(
    `key ${name} created for creator ${creatorId}; it ${expiry}. ` +
      'Its only copy is on stdout: the list contains a hash.\n',
  )
}

async function revokeKeys(target: ListTarget, names: readonly string[]): Promise<void> {
  const revoked = new Set<string>() // also by an earlier attempt that was in conflict
  const copies = new Set<string>()
  let hashes: ReadonlySet<string> = new Set()
  await target.update((documents) => {
    const { contents, ...change } = revokeApiKeys(documents, names, hashes)
    hashes = change.hashes
    for (const name of change.found) revoked.add(name)
    for (const name of change.copies) copies.add(name)
    const unknown = names.filter((name) => !revoked.has(name))
    if (unknown.length === 0) return { contents, result: undefined }
    throw new OperatorError(
      `Cannot revoke ${unknown.join(', ')}: no key has this name; nothing is revoked`,
    )
  })
  const lines = [...new Set(names)].map((name) => `${name} revoked\n`)
  for (const name of copies) lines.push(`${name} revoked: it had the same key\n`)
  await writeLines(process.stdout, lines.join(''))
}

async function printKeys(target: ListTarget, json: boolean): Promise<void> {
  const { keys, faults } = listApiKeys(await target.read(), Date.now())
  for (const fault of faults) process.stderr.write(`curtail: line ignored: ${fault}\n`)
  const rows = keys.map((key) => [key.name, key.creator_id, key.expires_at ?? 'never', key.state])
  const headings = ['NAME', 'CREATOR', 'EXPIRES', 'STATE']
  await writeLines(process.stdout, json ? `${JSON.stringify(keys)}\n` : renderTable(headings, rows))
}
