// Fixed window: counts hits per interval of the clock. Admits up to twice the limit across a
// boundary. The default of a rule without `algorithm`, counted as the reference does.
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
    // Without denied hits a count never exceeds the limit, so a read asks for one hit.
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

/** The current window; a clock that is set back starts no new one. */
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
