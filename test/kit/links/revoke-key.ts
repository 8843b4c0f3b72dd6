// Revokes an API key by the command while every create process receives creates with it, and
// measures until when each process knows the key.
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, createLinkRequest } from '../http/client.ts'
import { openHttpClient } from '../http/http-client.ts'
import type { RawResponse } from '../http/raw-http.ts'
import type { ClientKey, KeyedWorld } from '../processes/keyed-world.ts'
import { runCurtail } from '../processes/run-curtail.ts'
import { openCassandraClient } from '../processes/scan-world.ts'
import type { SecretScan } from '../secret-scan.ts'
import { waitFor } from '../wait-for.ts'
import type { ServingPod } from '../../stack/start-pods.ts'

/** The promise of the documentation. */
const APPLIED_MS_MAX = 5000
/** How long each process is observed after a revocation. */
const OBSERVED_MS = APPLIED_MS_MAX + 1000
const POLL_MS = 10
const COMMAND_MS_MAX = 120_000

const TARGET = 'https://example.com/'

/** A target that contains the name of the key, and a path. */
export function targetOf(key: ClientKey | undefined, path: string): string {
  return `${TARGET}${key?.name ?? ''}/${path}`
}

/** The name of the key in a target, and the start of the path. */
export function nameIn(target: string): readonly string[] {
  return target.slice(TARGET.length).split('/')
}

/** Revokes a key. Throws if a process knows it later than promised. Returns the times. */
export async function revokeUnderLoad(
  world: KeyedWorld,
  { key, scan }: { key: ClientKey; scan: SecretScan },
): Promise<string> {
  const observers = [...world.creates, world.requiring].map((pod) => observe(world, { pod, key }))
  try {
    for (const { waitUntilKnown } of observers) await waitUntilKnown()
    const startedMs = performance.now()
    const args = ['key', 'revoke', key.name]
    const command = await runCurtail(args, { API_KEYS: world.keyFile }, COMMAND_MS_MAX)
    const exitedMs = performance.now()
    scan.add({ kind: 'output of commands', name: 'key revoke' }, command.stdout + command.stderr)
    if (command.exitCode !== 0) throw new Error(`key revoke failed: ${command.stderr}`)
    await sleep(OBSERVED_MS)
    const results = await Promise.all(observers.map((observer) => observer.stop()))
    const times = results.map(({ name, lastKnownMs, unknown }) => {
      const afterMs = Math.round(lastKnownMs - exitedMs)
      if (afterMs > APPLIED_MS_MAX || unknown === 0) {
        throw new Error(`${name} still knew ${key.name} ${afterMs} ms after the command`)
      }
      return `${name} ${afterMs} (${unknown} unknown creates)`
    })
    const tookMs = Math.round(exitedMs - startedMs)
    return (
      `${key.name} revoked in ${tookMs} ms; ` +
      `the last create with it as a known key, ms after the exit: ${times.join(', ')}`
    )
  } finally {
    for (const observer of observers) await observer.stop()
  }
}

/** Creates links with a key at one process until it is stopped, and reads the creator of each. */
function observe(world: KeyedWorld, { pod, key }: { pod: ServingPod; key: ClientKey }) {
  const client = openHttpClient(pod.port)
  const store = openCassandraClient(world)
  let isStopping = false
  let lastKnownMs = -Infinity
  let unknown = 0
  const isRequired = pod === world.requiring
  const isKnown = async (response: RawResponse) => {
    if (isRequired && response.status === 401) return false
    const creator = await creatorOf(store, codeOf(response))
    if (creator === key.creatorId) return true
    if (creator === null && !isRequired) return false
    throw new Error(`${pod.name} created a link of ${String(creator)} with ${key.name}`)
  }
  const work = async () => {
    for (let i = 0; !isStopping; i++) {
      const headers = { 'X-API-Key': key.secret }
      const body = { long_url: targetOf(key, `revoked/${pod.name}/${i}`) }
      const sentMs = performance.now()
      if (await isKnown(await client.send(createLinkRequest(body, headers)))) {
        if (unknown > 0) throw new Error(`${pod.name} knows ${key.name} after it was unknown`)
        lastKnownMs = sentMs
      } else unknown++
      await sleep(POLL_MS)
    }
  }
  const working = work()
  working.catch(() => undefined) // awaited in `stop`
  return {
    waitUntilKnown: () =>
      Promise.race([
        waitFor(`${pod.name} to know ${key.name}`, () => lastKnownMs > 0),
        working, // fails if a create fails
      ]),
    async stop() {
      isStopping = true
      try {
        await working
      } finally {
        client.close()
        await store.shutdown()
      }
      return { name: pod.name, lastKnownMs, unknown }
    },
  }
}

async function creatorOf(
  store: ReturnType<typeof openCassandraClient>,
  code: string,
): Promise<string | null> {
  const cql = 'SELECT creator_id FROM links WHERE short_code = ?'
  const { rows } = await store.execute(cql, [code], { prepare: true })
  const [row] = rows
  if (row === undefined) throw new Error(`the link ${code} does not exist`)
  const creator = row.get('creator_id') as { toString(): string } | null
  return creator === null ? null : creator.toString()
}
