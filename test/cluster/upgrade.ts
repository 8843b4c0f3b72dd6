// Load during a change to a release, and links that must survive it.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from '@jest/globals'
import { z } from 'zod'
import { type RequestPlan, startLoad } from './request-load.ts'

const REQUEST_MS_MAX = 10_000
/** Below the limits of one client. */
const REDIRECT_EVERY_MS = 25
const CREATE_EVERY_MS = 1000
/** To create a link before the change. */
const FILL_TRIES_MAX = 10
const FILL_PAUSE_MS = 1000
/** Requests in flight. */
const CONCURRENCY = 8
/** Between two redirects: all together stay below the limit of one client. */
const CHECK_PAUSE_MS = 50

const created = z.object({ short_url: z.url() })

/** A link, and the target that it must have. */
export interface KnownLink {
  readonly code: string
  readonly target: string
}

/** Redirects of one link; `edge` is the URL of the edge. */
export function redirects(edge: string, code: string): RequestPlan {
  return {
    name: 'redirect',
    everyMs: REDIRECT_EVERY_MS,
    url: `${edge}/${code}`,
    expectedStatuses: [302],
  }
}

/** Creates; each link is added to `links`, if given. */
export function creates(edge: string, links?: KnownLink[]): RequestPlan {
  return {
    name: 'create',
    everyMs: CREATE_EVERY_MS,
    url: `${edge}/v1/urls`,
    body: () => ({ long_url: `https://example.com/rollout/${Date.now()}` }),
    expectedStatuses: [201],
    ...(links !== undefined && {
      onResponse: (sent, body) => links.push(parseLink(sent, body)),
    }),
  }
}

function parseLink(sent: object, body: string): KnownLink {
  const { short_url: shortUrl } = created.parse(JSON.parse(body))
  const { long_url: target } = z.object({ long_url: z.string() }).parse(sent)
  return { code: new URL(shortUrl).pathname.slice(1), target }
}

/** Calls `act` under load, prints the outcomes and checks that no request failed. */
export async function underLoad(
  what: string,
  plans: readonly RequestPlan[],
  act: () => Promise<void>,
): Promise<void> {
  const load = startLoad(plans)
  const startedMs = performance.now()
  try {
    await act()
  } finally {
    const { counts, failures, failureCount } = await load.stop()
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(0)
    process.stdout.write(`${what}, ${seconds} s: ${JSON.stringify(counts)}\n`)
    expect([what, failureCount, failures]).toEqual([what, 0, []])
  }
}

/**
 * Creates `count` links, among them one with an alias and one that expires. `url` is that of the
 * edge or, without its limits, of a create pod: `http://ADDRESS:8080`.
 */
export async function fillLinks(url: string, count: number): Promise<readonly KnownLink[]> {
  const bodies = Array.from({ length: count }, (_, i) => ({
    long_url: `https://example.com/before/${i}`,
    ...(i === 0 && { custom_alias: `a-${Date.now().toString(36)}` }),
    ...(i === 1 && { ttl_days: 1 }),
  }))
  return mapConcurrently(bodies, async (body) => {
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() }
    for (let tries = 1; ; tries++) {
      const response = await fetch(`${url}/v1/urls`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(REQUEST_MS_MAX),
      })
      const text = await response.text()
      if (response.status === 201) return parseLink(body, text)
      // The database may still be slow after its start; while Redis is, a limiter admits its share.
      const mayRetry = [429, 503].includes(response.status) && tries < FILL_TRIES_MAX
      if (!mayRetry) throw new Error(`Cannot create a link: ${text}`)
      await sleep(FILL_PAUSE_MS)
    }
  })
}

/** Checks that each link redirects to its target. */
export async function checkLinks(edge: string, links: readonly KnownLink[]): Promise<void> {
  const found = await mapConcurrently(links, async ({ code }) => {
    const response = await fetch(`${edge}/${code}`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(REQUEST_MS_MAX),
    })
    await response.arrayBuffer()
    await sleep(CHECK_PAUSE_MS)
    return { code, target: response.headers.get('Location') ?? String(response.status) }
  })
  expect(found).toEqual(links)
}

/** The results, in the order of `items`. */
async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const left = items.entries()
  const runSome = async () => {
    for (const [i, item] of left) results[i] = await run(item)
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, runSome))
  return results
}
