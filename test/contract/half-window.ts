// An algorithm that only tests use: it admits half of the limit, rounded up, in a window that the
// first hit starts. half-window.lua is its script. src contains neither its name nor a case for it.
import { type Algorithm, isTooFarAhead, type Limit } from '../../src/limits/algorithm.ts'

const halfOf = ({ requests }: Limit) => Math.ceil(requests / 2)

/** State: [start of the window, hits in it]. */
export const halfWindow: Algorithm = {
  name: 'half_window',
  takesBurst: false,
  denyConsumesByDefault: true,
  maxRequests: 100,
  checkLimit: ({ requests }) => (requests === 13 ? 'cannot count to 13' : undefined),
  scriptNumbers: (limit) => [halfOf(limit)],
  drains: false,
  refundableUs: ({ resetUs }) => resetUs,
  remainingAfter: ({ remaining }) => remaining,
  decide(input) {
    const { state, hits, nowUs, limit } = input
    const { windowUs } = limit
    const [storedUs = -Infinity, storedHits = 0] = state ?? []
    const isClamped = isTooFarAhead(storedUs, input)
    const count = nowUs < storedUs + windowUs ? storedHits : 0
    const startUs = count > 0 && !isClamped ? storedUs : nowUs
    const half = halfOf(limit)
    const admitted = hits < 0 || count + Math.max(1, hits) <= half
    const after = admitted ? Math.max(0, count + hits) : count
    const resetUs = after === 0 ? 0 : startUs + windowUs - nowUs
    return {
      admitted,
      remaining: Math.max(0, half - after),
      over: admitted ? 0 : hits,
      resetUs,
      retryAfterUs: admitted ? 0 : Math.max(1, hits) > half ? Infinity : resetUs,
      next: after === count && !isClamped ? undefined : [startUs, after],
      expiresInUs: resetUs,
    }
  },
}
