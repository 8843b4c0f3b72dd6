// Conditions that the tests of the stack wait for: Envoy sends requests to every pod, and the
// limiters share their limits.
import { readFile } from 'node:fs/promises'
import { codeOf, createLinkRequest } from '../kit/http/client.ts'
import { openHttpClient } from '../kit/http/http-client.ts'
import { type RawResponse, headerOf } from '../kit/http/raw-http.ts'
import { waitFor } from '../kit/wait-for.ts'
import { requestFrom, newAddress } from './edge-client.ts'
import { type Load, startLoad, underLoad } from './load.ts'
import { logFileOf } from './log-files.ts'
import { isAlive } from './component.ts'
import type { Stack } from './start-stack.ts'

const WHOLE_MS_MAX = 60_000
/** Answers that a load waits for before a fault, and after it. */
const ANSWERS = 300
const target = 'https://example.com/followed'

/** Whether the limiters decided the response with their shared counters. */
export function isShared(answer: RawResponse): boolean {
  return headerOf(answer, 'X-RateLimit-Limit') !== undefined && !isLocal(answer)
}

/** Whether the edge itself denied the request, because the limiters did not respond. */
export function isLocal(answer: RawResponse): boolean {
  return answer.status === 429 && answer.body.includes('"rule":"local"')
}

/** The number of healthy endpoints of an Envoy cluster. */
export function healthyOf(stack: Stack, cluster: 'create' | 'redirect' | 'ratelimit') {
  return stack.edge.envoy.now().stat(`^cluster.${cluster}.membership_healthy$`)
}

/** Restarts dead components; waits until Envoy uses every pod and limits are shared. */
export async function untilWhole(stack: Stack): Promise<void> {
  for (const part of stack.parts) if (!isAlive(part.pid())) await part.restart()
  for (const cluster of ['create', 'redirect', 'ratelimit'] as const) {
    const isWhole = async () => (await healthyOf(stack, cluster)) === 2
    await waitFor(`two of ${cluster}`, isWhole, WHOLE_MS_MAX)
  }
  await waitForSharedLimits(stack)
}

/** Waits until the limiters decide a redirect; resolves to the duration in ms. */
export async function waitForSharedLimits(stack: Stack): Promise<number> {
  const httpClient = openHttpClient(stack.port)
  const startedMs = performance.now()
  const ask = async () =>
    isShared(await httpClient.send(requestFrom(newAddress(), { path: '/none' })))
  await waitFor('limits to be shared', ask, WHOLE_MS_MAX)
  httpClient.close()
  return Math.round(performance.now() - startedMs)
}

/** Creates links; resolves to their codes. */
export async function makeLinks(stack: Stack, count: number): Promise<readonly string[]> {
  const httpClient = openHttpClient(stack.port)
  const codes: string[] = []
  while (codes.length < count) {
    const ask = requestFrom(newAddress(), createLinkRequest({ long_url: target }))
    codes.push(codeOf(await httpClient.send(ask)))
  }
  httpClient.close()
  return codes
}

/** Clients with many addresses that resolve links of the tests. */
export function startRedirects(codes: readonly string[], port: () => number): Load {
  const from = Array.from({ length: 50 }, newAddress)
  let at = 0
  return startLoad({
    port,
    ask: () => {
      at++
      return requestFrom(from[at % from.length] ?? '', {
        path: `/${codes[at % codes.length] ?? ''}`,
      })
    },
    isGood: (answer) => answer.status === 302 && headerOf(answer, 'Location') === target,
  })
}

/**
 * Does something to the stack under a load, which it gets going before and after; prints what the
 * load saw, and what `happens` says. Fails where a client saw it.
 */
export async function injectFault(
  { folder }: Stack,
  { fault, load }: { fault: string; load: Load },
  happens: (load: Load) => Promise<string>,
): Promise<void> {
  const [seen, more] = await underLoad(load, async () => {
    await load.more(ANSWERS)
    const said = await happens(load)
    await load.more(ANSWERS)
    return said
  })
  const { asked, failed, excused, msP99, msMax } = seen
  const times = `p99 ${String(msP99)} ms, longest ${String(msMax)} ms`
  const sum = `${String(asked)} requests, ${String(failed.length)} failed, ${times}`
  const still = excused === 0 ? '' : `, ${String(excused)} under way as the machine stood still`
  process.stdout.write(`${fault}: ${sum}${still}${more === '' ? '' : `, ${more}`}\n`)
  if (failed.length === 0) return
  const accesses = await readFile(logFileOf(folder, 'envoy-1-access'), 'utf8')
  const why = accesses.split('\n').filter((line) => /"status":5\d\d/.test(line))
  const saw = [...failed.slice(0, 5), 'Envoy said:', ...why.slice(-5)]
  throw new Error(`${fault}: clients saw ${saw.join('\n')}`)
}
