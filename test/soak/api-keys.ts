// 10,000 API keys with creates under load: a revoked key is unknown to every create process within
// 5 s, no other key is affected, and no log, metric, span, page or store contains a key.
// `KEYS=n` sets the number of keys.
import { setTimeout as sleep } from 'node:timers/promises'
import { generateApiKey } from '../../src/create/change-api-keys.ts'
import { codeOf, createLinkRequest } from '../kit/http/client.ts'
import { openHttpClient } from '../kit/http/http-client.ts'
import { nameIn, revokeUnderLoad, targetOf } from '../kit/links/revoke-key.ts'
import {
  type ClientKey,
  createClientKeys,
  type KeyedWorld,
  startKeyedWorld,
} from '../kit/processes/keyed-world.ts'
import { runCurtail } from '../kit/processes/run-curtail.ts'
import {
  type LinkColumns,
  scanCassandra,
  scanLogs,
  scanMetrics,
  scanPages,
  scanRedis,
  watchRedis,
} from '../kit/processes/scan-world.ts'
import { createRandom } from '../kit/random.ts'
import { createSecretScan, type SecretScan } from '../kit/secret-scan.ts'
import { waitFor } from '../kit/wait-for.ts'
import { newAddress, requestFrom } from '../stack/edge-client.ts'
import { type Load, startLoad } from '../stack/load.ts'
import { ADMIN_TOKEN } from '../stack/serving-role.ts'

const FULL_KEYS = 10_000
const KEYS_MIN = 50
const REVOKED = 5
const KEY_PREFIX = 'curtail_'
const EDGE_CLIENTS = 6
const REQUIRING_CLIENTS = 2
const FLUSHED_MS = 3000
const CACHED_MS = 500
const COMMAND_MS_MAX = 120_000
const COVERED_MS_MAX = 900_000
const SHOWN_CODES = 20
/** The pods that send spans. */
const TRACED = ['curtail-edge', 'curtail-create', 'curtail-redirect', 'curtail-ratelimit']
/** Each must contain the planted key, and more than 0 bytes. */
const PLANTED_KINDS = [
  ...['logs of create', 'logs of envoy-access', 'metrics of create', 'traces of curtail-edge'],
  ...['responses of the admin API', 'Redis, cache', 'commands of Redis, cache', 'Cassandra'],
]

type Log = (line: string) => void

/** Runs the test at full size. */
export async function run({ seed, log }: { seed: number; log: Log }): Promise<void> {
  const count = Number(process.env['KEYS'] ?? FULL_KEYS)
  if (!Number.isSafeInteger(count) || count < KEYS_MIN || count > FULL_KEYS) {
    throw new Error(`KEYS must be an integer from ${KEYS_MIN} to ${FULL_KEYS}: it is ${count}`)
  }
  const keys = createClientKeys(count)
  const planted = generateApiKey()
  const scan = createSecretScan([...keys.map(({ secret }) => secret), planted], KEY_PREFIX)
  const onExport = (body: Buffer) => {
    const services = TRACED.filter((name) => body.includes(name))
    for (const name of services) scan.add({ kind: `traces of ${name}`, name }, body)
  }
  const world = await startKeyedWorld({ keys, onExport })
  try {
    const redis = await watchRedis(world, scan)
    const code = await plant(world, planted)
    const isCached = async () => {
      await sleep(CACHED_MS) // a new link is not cached, and stays in the memory of each pod
      await Promise.all(world.redirects.map(({ port }) => fetchLink(port, code)))
      await scanRedis(world, scan)
      return scan.kinds.get('Redis, cache')?.found.has(count) === true
    }
    await waitFor('the planted key in Redis', isCached)
    log(`${count} keys; started ${world.logs.length} processes`)
    const revoked = pickKeys(keys, seed)
    const loads = startLoads(world, revoked)
    try {
      for (const key of revoked) log(await revokeUnderLoad(world, { key, scan }))
      await waitFor('a create with each key', loads.isCovered, COVERED_MS_MAX)
      const hasCounters = async () => {
        await scanRedis(world, scan) // under load: counters expire within seconds
        return scan.kinds.has('Redis, counters')
      }
      await waitFor('a counter in Redis', hasCounters)
    } finally {
      log(await loads.stop())
    }
    const list = await runCurtail(['key', 'list'], { API_KEYS: world.keyFile }, COMMAND_MS_MAX)
    scan.add({ kind: 'output of commands', name: 'key list' }, list.stdout + list.stderr)
    await sleep(FLUSHED_MS)
    await scanLogs(world, scan)
    await scanMetrics(world, scan)
    await scanPages(world, scan, [code, ...loads.codes().slice(0, SHOWN_CODES)])
    redis.stop()
    const links = await scanCassandra(world, scan)
    checkCreatorIds({ links, keys, revoked, codes: loads.codes() })
    log(`${links.length} links have the creator of their key`)
    checkScan(scan, { planted: count, log })
  } finally {
    await world.stop()
  }
}

async function fetchLink(port: number, code: string): Promise<void> {
  const client = openHttpClient(port)
  await client.send({ path: `/${code}` })
  client.close()
}

/**
 * Writes a key that is not listed into an output of each kind, so that the scan must find it.
 * Returns the code of a link to it.
 */
async function plant({ edge, creates, startRefill }: KeyedWorld, key: string): Promise<string> {
  const client = openHttpClient(edge.port)
  const [pod] = creates
  if (pod === undefined) throw new Error('no create process')
  try {
    const body = { long_url: `https://example.com/?key=${key}` }
    const code = codeOf(await client.send(createLinkRequest(body)))
    for (const path of [`/${code}`, `/${key}`]) await client.send({ path })
    await fetch(`${pod.now().adminUrl}/admin/links/${code}/enable`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${ADMIN_TOKEN}`, 'X-Operator': key },
    })
    await startRefill({ pool: key, target: 1000 }).succeeded(60_000)
    return code
  } finally {
    client.close()
  }
}

function pickKeys(keys: readonly ClientKey[], seed: number): readonly ClientKey[] {
  const random = createRandom(seed)
  const picked = new Set<ClientKey>()
  while (picked.size < REVOKED) picked.add(random.pick(keys))
  return [...picked]
}

/** Creates with each key in turn but the revoked ones, at Envoy and the pod that requires keys. */
function startLoads({ edge, requiring, keys }: KeyedWorld, revoked: readonly ClientKey[]) {
  const used = keys.filter((key) => !revoked.includes(key))
  const codes: string[] = []
  let requests = 0
  const startOne = (port: number, clients: number): Load =>
    startLoad({
      port: () => port,
      clients,
      nextRequest: () => {
        const key = used[requests++ % used.length]
        const headers = {
          'X-API-Key': key?.secret ?? '',
          ...(requests % 10 === 0 && { 'Idempotency-Key': `key-${requests}` }),
        }
        const body = { long_url: targetOf(key, `load/${requests}`) }
        // Each from its own address: while the limiter times out, Envoy limits each address.
        return requestFrom(newAddress(), createLinkRequest(body, headers))
      },
      isExpected: (response) => {
        if (response.status === 201) codes.push(codeOf(response))
        return response.status === 201
      },
    })
  const loads = [startOne(edge.port, EDGE_CLIENTS), startOne(requiring.port, REQUIRING_CLIENTS)]
  return {
    codes: () => codes,
    isCovered: () => codes.length >= used.length,
    /** Throws if a create failed. Returns the figures on one line. */
    async stop() {
      const results = await Promise.all(loads.map((load) => load.stop()))
      const failed = results.flatMap((result) => result.failed)
      if (failed.length > 0) {
        throw new Error(`${failed.length} creates failed: ${failed.slice(0, 5).join('; ')}`)
      }
      const figures = results.map(({ requests: sum, failedWhileStalled, msP99, msMax }) => {
        const stalled = `${failedWhileStalled} failed as the machine stalled`
        return `${sum} (${stalled}, p99 ${msP99} ms, longest ${msMax} ms)`
      })
      const places = 'through Envoy and at the pod that requires keys'
      return `creates with ${used.length} keys ${places}: ${figures.join(', ')}`
    },
  }
}

/** Throws if a link of the load is missing, or has not the creator of the key in its target. */
function checkCreatorIds(given: {
  links: readonly LinkColumns[]
  keys: readonly ClientKey[]
  revoked: readonly ClientKey[]
  codes: readonly string[]
}): void {
  const creatorIds = new Map(given.keys.map(({ name, creatorId }) => [name, creatorId]))
  const stored = new Map(given.links.map((link) => [link.short_code, link]))
  const missing = given.codes.filter((code) => !stored.has(code))
  if (missing.length > 0) throw new Error(`created links are missing: ${missing.join(', ')}`)
  const used = new Set<string>()
  for (const { short_code: code, long_url: target, creator_id: creator } of given.links) {
    const [name = '', kind] = nameIn(target)
    if (kind !== 'load') continue
    used.add(name)
    if (creatorIds.get(name) !== creator) {
      throw new Error(`the link ${code} of ${name} has the creator ${String(creator)}`)
    }
  }
  const expected = given.keys.length - given.revoked.length
  if (used.size !== expected) throw new Error(`${used.size} of ${expected} keys created a link`)
}

/** Throws if a listed key was found, a planted one was not, or nothing was scanned. */
function checkScan(scan: SecretScan, { planted, log }: { planted: number; log: Log }): void {
  const leaks: string[] = []
  const empty: string[] = []
  for (const [kind, { bytes, found, sources }] of [...scan.kinds].sort()) {
    const others = [...found].filter(([index]) => index !== planted)
    leaks.push(...others.map(([index, name]) => `key ${index} in the ${kind} (${name})`))
    if (bytes === 0) empty.push(kind)
    const hasPlanted = found.has(planted) ? ', found the planted key' : ''
    log(`scanned ${kind}: ${bytes} bytes of ${sources.size} sources${hasPlanted}`)
  }
  if (leaks.length > 0) throw new Error(`keys leaked: ${leaks.slice(0, 20).join('; ')}`)
  const required = [...PLANTED_KINDS, 'Redis, counters', 'commands of Redis, counters']
  required.push(...TRACED.map((name) => `traces of ${name}`))
  empty.push(...required.filter((kind) => !scan.kinds.has(kind)))
  if (empty.length > 0) throw new Error(`nothing was scanned of: ${empty.join(', ')}`)
  const blind = PLANTED_KINDS.filter((kind) => scan.kinds.get(kind)?.found.has(planted) !== true)
  if (blind.length > 0) throw new Error(`the planted key was not found in: ${blind.join(', ')}`)
}
