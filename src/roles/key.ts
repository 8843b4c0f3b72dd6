// `curtail key`: the API keys of clients, in the list that create pods read.
import { type ChangeReporter, createChangeReporter } from '../clients/report-action.ts'
import { writeLines } from '../clients/write-output.ts'
import type { ConfigOf } from '../config/config.ts'
import { API_KEY_NAME_PATTERN, CREATOR_ID_MAX } from '../create/api-keys.ts'
import {
  addApiKey,
  generateApiKey,
  generateCreatorId,
  listApiKeys,
  revokeApiKeys,
} from '../create/change-api-keys.ts'
import { apiKeySettings } from '../create/settings.ts'
import { clientSettings } from '../http/admin/client-settings.ts'
import { checkOperator, operatorSetting } from '../http/admin/operator-setting.ts'
import { type ListAction, SUBJECTS_MAX } from '../http/admin/post-action.ts'
import {
  type ListKind,
  oneListRequired,
  withListTarget,
} from '../kube/operator-lists/open-list-target.ts'
import { listSyncSettings } from '../kube/list-sync/settings.ts'
import { controllerSettings } from '../kube/settings.ts'
import { jsonFlag, operatorFlag, type Parsed } from '../process/command-line.ts'
import { renderJsonLines } from '../process/json-lines.ts'
import { type ListDocument, type ListTarget, UnknownOutcomeError } from '../process/list-target.ts'
import { defineRole, OperatorError, UsageError } from '../process/role.ts'
import { renderTable } from '../process/table.ts'
import { messageOf } from '../resilience/message-of.ts'
import { utcTimeOf } from '../transfer/utc-time.ts'

const listKind: ListKind = {
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
  ...clientSettings,
  OPERATOR: operatorSetting,
} as const

const commands = {
  create: {
    about: 'generates an API key, and prints it',
    operands: ['NAME'],
    flags: {
      creator: { about: 'creator of the links; by default a random number', value: 'ID' },
      expires: {
        about: 'date or RFC 3339 time; by default, the key does not expire',
        value: 'DATE',
      },
      ...operatorFlag,
      ...jsonFlag,
    },
  },
  list: { about: 'lists the keys, without their hashes', flags: { ...operatorFlag, ...jsonFlag } },
  revoke: {
    about: 'removes keys',
    operands: ['NAME...'],
    flags: { ...operatorFlag, ...jsonFlag },
  },
} as const
type Arguments = Parsed<typeof commands>

/** `key create|list|revoke`. */
export const role = defineRole({
  name: 'key',
  about:
    'create generates an API key, prints it on stdout, and adds its hash to the list; the key\n' +
    'cannot be displayed later. The links that are created with it have the creator ID, by\n' +
    'default a random number. DATE is such as 2027-01-31 or 2027-01-31T12:00:00Z; without it,\n' +
    'the key does not expire. list prints the keys without their hashes. revoke removes keys,\n' +
    'and their copies under other names; the links of the keys remain. The list is the file at\n' +
    'API_KEYS. The service must be started with the same setting; it applies a change within\n' +
    '5 seconds. On Kubernetes, the list is in Secrets: a new key is added to the first one that\n' +
    'has space, and the command must be allowed to get and update them. A change is reported to\n' +
    'the audit log of the admin API, with the name of the operator, by default OPERATOR.',
  commands,
  settings,
  dependent: [oneListRequired(listKind, settings)],
  check: (args) => parseKeyArgs(args, Date.now()),
  run: async ({ config, args }) => {
    const { operator = config.OPERATOR } = args.flags
    const request = parseKeyArgs(args, Date.now())
    const api = { url: config.ADMIN_URL, token: config.ADMIN_TOKEN, operator }
    const change = createChangeReporter<ListAction>(api, (lines) => process.stderr.write(lines))
    await withList(config, (target) => runVerb(target, request, change))
    return { exitCode: 0 }
  },
})

function withList(
  config: ConfigOf<typeof settings>,
  use: (target: ListTarget) => Promise<void>,
): Promise<void> {
  const { API_KEYS: path, API_KEYS_SECRET: names, ...access } = config
  return withListTarget(listKind, { path, names, ...access }, use)
}

type Change = ChangeReporter<ListAction>

type KeyRequest = { readonly json: boolean } & (
  | {
      readonly verb: 'create'
      readonly name: string
      readonly creatorId: bigint
      readonly expiresAt: string | undefined
    }
  | { readonly verb: 'list' }
  | { readonly verb: 'revoke'; readonly names: readonly string[] }
)

/** Throws UsageError. */
function parseKeyArgs(args: Arguments, nowMs: number): KeyRequest {
  const { operands: names } = args
  const { json, operator } = args.flags
  checkOperator(operator)
  for (const name of names) checkName(name)
  if (args.command === 'list') return { verb: 'list', json }
  if (args.command === 'revoke') return { verb: 'revoke', names, json }
  return {
    verb: 'create',
    name: names[0] ?? '',
    creatorId: parseCreator(args.flags.creator),
    expiresAt: parseExpiry(args.flags.expires, nowMs),
    json,
  }
}

function checkName(name: string): void {
  if (API_KEY_NAME_PATTERN.test(name)) return
  const allowed = '1 to 63 of the characters a-z, 0-9 and -, and must not start or end with -'
  throw new UsageError(`NAME must be ${allowed}: it is ${JSON.stringify(name)}`)
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

async function runVerb(target: ListTarget, request: KeyRequest, change: Change): Promise<void> {
  if (request.verb === 'create') await createKey(target, request, change)
  else if (request.verb === 'revoke') await revokeKeys(target, request, change)
  else await printKeys(target, request.json)
}

async function createKey(
  target: ListTarget,
  { name, creatorId, expiresAt, json }: Extract<KeyRequest, { verb: 'create' }>,
  change: Change,
): Promise<void> {
  const key = generateApiKey()
  const fail = (cause: string) => new OperatorError(`Cannot create the key ${name}: ${cause}`)
  const action = { action: 'key-create', keys: [name], count: 1, creator: `${creatorId}` } as const
  const add = (documents: readonly ListDocument[]) => {
    const contents = addApiKey(documents, { name, creatorId, expiresAt, key })
    if (contents === 'exists') throw fail('a key has this name; use another one, or revoke it')
    if (contents === 'full') throw fail(target.whenFull)
    if (contents === 'unusable') throw fail('the list has too many keys; revoke some')
    return { contents, result: undefined }
  }
  const addAndPrint = async () => {
    let isWritten = false
    try {
      await target.update(add)
      isWritten = true
      const created = { name, creator_id: String(creatorId), expires_at: expiresAt ?? null, key }
      await writeLines(process.stdout, json ? renderJsonLines([created]) : `${key}\n`)
    } catch (error) {
      if (!isWritten && !(error instanceof UnknownOutcomeError)) throw error
      throw new UnknownOutcomeError(
        `${messageOf(error)}: the list may contain the key ${name}, whose value is lost: ` +
          `run \`key revoke ${name}\`, then create it`,
      )
    }
  }
  await change(() => action, addAndPrint)
  const expiry = expiresAt === undefined ? 'does not expire' : `expires at ${expiresAt}`
  process.stderr.write(
    `key ${name} created for creator ${creatorId}; it ${expiry}. ` +
      'Its only copy is on stdout: the list contains a hash.\n',
  )
}

async function revokeKeys(
  target: ListTarget,
  { names, json }: Extract<KeyRequest, { verb: 'revoke' }>,
  change: Change,
): Promise<void> {
  const revoked = new Set<string>() // including those of earlier attempts with a conflict
  const copies = new Set<string>()
  const creatorIds = new Map<string, string>()
  let hashes: ReadonlySet<string> = new Set()
  const revoke = (documents: readonly ListDocument[]) => {
    const { contents, ...keys } = revokeApiKeys(documents, names, hashes)
    hashes = keys.hashes
    for (const name of keys.found) revoked.add(name)
    for (const name of keys.copies) copies.add(name)
    for (const [name, creator] of keys.creatorIds) creatorIds.set(name, creator)
    const unknown = names.filter((name) => !revoked.has(name))
    if (unknown.length === 0) return { contents, result: undefined }
    throw new OperatorError(
      `Cannot revoke ${unknown.join(', ')}: no key has this name; nothing is revoked`,
    )
  }
  const actionOf = () => {
    // A line that the service ignores can have any string as its name, such as a key.
    const keys = [...revoked, ...copies].filter((name) => API_KEY_NAME_PATTERN.test(name))
    const count = revoked.size + copies.size
    return { action: 'key-revoke', keys: keys.slice(0, SUBJECTS_MAX), count } as const
  }
  await change(actionOf, () => target.update(revoke))
  if (json) {
    const all = new Set([...names, ...copies])
    const creatorOf = (name: string) => creatorIds.get(name) ?? null
    const objects = [...all].map((name) => {
      return { name, creator_id: creatorOf(name), state: 'revoked' }
    })
    return writeLines(process.stdout, renderJsonLines(objects))
  }
  const lines = [...new Set(names)].map((name) => `${name} revoked\n`)
  for (const name of copies) lines.push(`${name} revoked: it had the same key\n`)
  await writeLines(process.stdout, lines.join(''))
  for (const [name, creator] of creatorIds) {
    process.stderr.write(
      `key ${name} was of creator ${creator}, whose links are unchanged: ` +
        `curtail link list --creator=${creator} lists them, ` +
        `curtail link disable --creator=${creator} disables them\n`,
    )
  }
}

async function printKeys(target: ListTarget, json: boolean): Promise<void> {
  const { keys, faults } = listApiKeys(await target.read(), Date.now())
  for (const fault of faults) process.stderr.write(`curtail: line ignored: ${fault}\n`)
  const rows = keys.map((key) => [key.name, key.creator_id, key.expires_at ?? 'never', key.state])
  const headings = ['NAME', 'CREATOR', 'EXPIRES', 'STATE']
  await writeLines(process.stdout, json ? renderJsonLines(keys) : renderTable(headings, rows))
}
