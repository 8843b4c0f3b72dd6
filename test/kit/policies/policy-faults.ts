// Faults of the processes of a soak test of RateLimitPolicies.
import { setTimeout as sleep } from 'node:timers/promises'
import { canConnect } from '../../dependencies/can-connect.ts'
import type { Random } from '../random.ts'
import { waitFor } from '../wait-for.ts'
import { CONTROLLERS, LEADER_MS_MAX, LIMITERS, type PolicySoak } from './policy-soak.ts'

/** Five times the time within which a leader renews its Lease. */
const LEASE_MS_MAX = 50_000

/** The faults: each of them ends before it resolves, except that controllers restart later. */
export const policyFaults: Readonly<
  Record<string, (soak: PolicySoak, random: Random) => Promise<void>>
> = {
  'a controller is killed': (soak, random) =>
    soak.signalController(random.int(CONTROLLERS), 'SIGKILL'),
  'a controller is stopped': (soak, random) =>
    soak.signalController(random.int(CONTROLLERS), 'SIGTERM'),
  'both controllers are killed': async (soak) => {
    await Promise.all([0, 1].map((at) => soak.signalController(at, 'SIGKILL')))
  },
  'a limiter is killed': (soak, random) => soak.restartLimiter(random.int(LIMITERS), true),
  'a limiter is stopped': (soak, random) => soak.restartLimiter(random.int(LIMITERS), false),
  'the API server is down': (soak, random) =>
    soak.withoutApi(() => sleep(500 + random.int(14_000))),
  'the leader loses its Lease': async (soak) => {
    await soak.waitForLeader()
    const { lostLeases } = soak
    await soak.withoutApi(() =>
      waitFor('the leader to exit', () => soak.lostLeases > lostLeases, LEASE_MS_MAX),
    )
  },
  'a limiter restarts without a leader': async (soak, random) => {
    const at = random.int(LIMITERS)
    await Promise.all([
      ...[0, 1].map((controller) => soak.signalController(controller, 'SIGKILL')),
      soak.restartLimiter(at, true),
    ])
  },
  'controllers and a limiter start without API server': (soak, random) =>
    soak.withoutApi(() => startWithoutApi(soak, random.int(LIMITERS))),
}

/** Limiters use their copy, and no controller leads. */
async function startWithoutApi(soak: PolicySoak, at: number): Promise<void> {
  await Promise.all([0, 1].map((controller) => soak.signalController(controller, 'SIGKILL')))
  await soak.restartLimiter(at, true)
  const isRestarted = () => soak.controllers.every((controller) => controller !== undefined)
  await waitFor('the controllers', isRestarted, LEADER_MS_MAX)
  if (await canConnect(soak.cluster.adsPort)) throw new Error('a controller leads without Lease')
  const restored = soak.limiters[at]?.log.some(({ source }) => source === 'copy')
  if (restored !== true) throw new Error('the limiter has not loaded its copy')
}
