// State of the stack that its tests restore, wait for, and change by faults under load.
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

const HEALTHY_MS_MAX = 60_000
/** Responses that a load waits for before a fault, and after it. */
const RESPONSES = 300
const target = 'https://example.com/redirected'

/** Whether the limiters decided the response with their shared counters. */
export function isShared(response: RawResponse): boolean {
  return headerOf(response, 'X-RateLimit-Limit') !== undefined && !isLocal(response)
}

/** Whether the edge itself denied the request, because the limiters did not respond. */
export function isLocal(response: RawResponse): boolean {
  return response.status === 429 && response.body.includes('"rule":"local"')
}

/** The number of healthy endpoints of an Envoy cluster. */
export function healthyOf(stack: Stack, cluster: 'create' | 'redirect' | 'ratelimit') {
  return stack.edge.envoy.now().stat(`^cluster.${cluster}.membership_healthy$`)
}

/** Restarts dead components; waits until Envoy uses every pod and the limiters share limits. */
export async function restoreStack(stack: Stack): Promise<void> {
  for (const component of stack.components) if (!isAlive(component.pid())) await component.restart()
  for (const cluster of ['create', 'redirect', 'ratelimit'] as const) {
    const isHealthy = async () => (await healthyOf(stack, cluster)) === 2
    await waitFor(`two of ${cluster}`, isHealthy, HEALTHY_MS_MAX)
  }
  await waitForSharedLimits(stack)
}

/** Waits until the limiters decide a redirect; resolves to the wait in ms. */
export async function waitForSharedLimits(stack: Stack): Promise<number> {
  const httpClient = openHttpClient(stack.port)
  const startedMs = performance.now()
  const areShared = async () =>
    isShared(await httpClient.send(requestFrom(newAddress(), { path: '/none' })))
  await waitFor('shared limits', areShared, HEALTHY_MS_MAX)
  httpClient.close()
  return Math.round(performance.now() - startedMs)
}

/** Creates links; resolves to their codes. */
export async function createLinks(stack: Stack, count: number): Promise<readonly string[]> {
  const httpClient = openHttpClient(stack.port)
  const codes: string[] = []
  while (codes.length < count) {
    const request = requestFrom(newAddress(), createLinkRequest({ long_url: target }))
    codes.push(codeOf(await httpClient.send(request)))
  }
  httpClient.close()
  return codes
}

/** A load of redirects of these codes, from many client addresses. */
export function startRedirects(codes: readonly string[], port: () => number): Load {
  const from = Array.from({ length: 50 }, newAddress)
  let at = 0
  return startLoad({
    port,
    nextRequest: () => {
      at++
      return requestFrom(from[at % from.length] ?? '', {
        path: `/${codes[at % codes.length] ?? ''}`,
      })
    },
    isExpected: (response) => response.status === 302 && headerOf(response, 'Location') === target,
  })
}

/**
 * Runs `inject` under a load, with responses before and after it; prints the result of the load and
 * the details that `inject` returns. Throws if a request failed.
 */
export async function injectFault(
  { folder }: Stack,
  { fault, load }: { fault: string; load: Load },
  inject: (load: Load) => Promise<string>,
): Promise<void> {
  const [result, details] = await underLoad(load, async () => {
    await load.waitForResponses(RESPONSES)
    const detail = await inject(load)
    await load.waitForResponses(RESPONSES)
    return detail
  })
  const { requests, failed, failedWhileStalled, msP99, msMax } = result
  const times = `p99 ${String(msP99)} ms, longest ${String(msMax)} ms`
  const sum = `${String(requests)} requests, ${String(failed.length)} failed, ${times}`
  const stall =
    failedWhileStalled === 0 ? '' : `, ${String(failedWhileStalled)} failed as the machine stalled`
  process.stdout.write(`${fault}: ${sum}${stall}${details === '' ? '' : `, ${details}`}\n`)
  if (failed.length === 0) return
  const entries = await readFile(logFileOf(folder, 'envoy-1-access'), 'utf8')
  const errors = entries.split('\n').filter((line) => /"status":5\d\d/.test(line))
  const lines = [...failed.slice(0, 5), 'Envoy logged:', ...errors.slice(-5)]
  throw new Error(`${fault}: clients received ${lines.join('\n')}`)
}
