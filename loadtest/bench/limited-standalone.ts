// The standalone process of the benchmarks: on the server's core, with limits that count every
// request and reject none.
import { fileURLToPath } from 'node:url'
import { type Standalone, startStandalone } from '../../test/kit/processes/standalone.ts'
import { onServerCore } from './pinning.ts'

const rules = fileURLToPath(new URL('limits.yaml', import.meta.url))

/** Starts the process; `env` adds settings. */
export function startLimited(env: Readonly<Record<string, string>> = {}): Promise<Standalone> {
  return startStandalone({ wrapper: onServerCore, env: { RATE_LIMITS: rules, ...env } })
}
