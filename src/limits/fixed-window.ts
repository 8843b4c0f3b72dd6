// Fixed window: counts hits per interval of the clock. Up to twice the limit can pass across a
// boundary. This is what a rule without `algorithm` means, counted as the reference counts it.
import { type Algorithm, type Charge, COUNT_MAX, isTooFarAhead } from './algorithm.ts'

/** State: [start of the window, hits in it]. */
export const fixedWindow: Algorithm = {
  name: 'fixed_window',
  takesBurst: false,
  decide(charge) {
    const { cost, nowUs, limit } = charge
    const { requests, windowUs, denyConsumes } = limit
    const { startUs, count, isClamped } = windowOf(charge)
    const after = Math.min(COUNT_MAX, Math.max(0, count + cost))
    // Without denied hits in it a count never passes the limit, so a look asks for one hit.
    const asked = cost === 0 && !denyConsumes ? count + 1 : after
    const admitted = cost < 0 || asked <= requests
    const kept = admitted || denyConsumes ? after : count
    const resetUs = startUs + windowUs - nowUs
    return {
      admitted,
      remaining: Math.max(0, requests - kept),
      over: overOf({ admitted, cost, beyond: denyConsumes ? after - requests : cost }),
      resetUs,
      retryAfterUs: waitOf({ admitted, isPossible: cost <= requests, resetUs }),
      next: kept === count && !isClamped ? undefined : [startUs, kept],
      expiresInUs: resetUs,
    }
  },
}

/** The window of the moment; a clock set back opens no new one. */
function windowOf(charge: Charge): { startUs: number; count: number; isClamped: boolean } {
  const { state, nowUs, limit } = charge
  const [seenStartUs = -Infinity, seen = 0] = state ?? []
  const currentUs = nowUs - (nowUs % limit.windowUs)
  const isClamped = isTooFarAhead(seenStartUs, charge)
  const startUs = isClamped ? currentUs : Math.max(currentUs, seenStartUs)
  return { startUs, count: isClamped || startUs === seenStartUs ? seen : 0, isClamped }
}

function overOf(of: { admitted: boolean; cost: number; beyond: number }): number {
  return of.admitted ? 0 : Math.min(of.cost, of.beyond)
}

function waitOf(of: { admitted: boolean; isPossible: boolean; resetUs: number }): number {
  if (of.admitted) return 0
  return of.isPossible ? of.resetUs : Infinity
}
