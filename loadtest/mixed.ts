// k6: the whole traffic together: nine of ten redirects hot, one cold, and creates; each with its
// own thresholds.
import { scenario } from 'k6/execution'
import {
  addressOf,
  checkCreated,
  checkRedirect,
  codeAt,
  createLink,
  createLinks,
  type Links,
  resolveCode,
} from './clients.ts'
import {
  arrivals,
  createThresholds,
  CREATES_SHARE,
  redirectThresholds,
  wholeLoad,
  trends,
} from './shapes.ts'
import { summariesOf } from './summaries.ts'

const HOT_LINKS = 20
const HOT_SHARE = 0.9

/** Read by k6. */
export const options = {
  summaryTrendStats: trends,
  scenarios: {
    redirects_hot: arrivals(HOT_SHARE, { exec: 'redirectHot' }),
    redirects_cold: arrivals(1 - HOT_SHARE, { exec: 'redirectCold' }),
    creates: arrivals(CREATES_SHARE, { exec: 'create' }),
  },
  thresholds: {
    ...wholeLoad,
    ...redirectThresholds('redirects_hot'),
    ...redirectThresholds('redirects_cold'),
    ...createThresholds('creates'),
  },
}

/** Read by k6. */
export const setup = createLinks

/** Read by k6: one arrival. */
export function redirectHot(links: Links): void {
  const at = scenario.iterationInTest
  checkRedirect(resolveCode(codeAt(links, at % HOT_LINKS), addressOf(at)))
}

/** Read by k6: one arrival. */
export function redirectCold(links: Links): void {
  const at = scenario.iterationInTest
  checkRedirect(resolveCode(codeAt(links, HOT_LINKS + at), addressOf(at)))
}

/** Read by k6: one arrival. */
export function create(): void {
  checkCreated(createLink(addressOf(scenario.iterationInTest)))
}

/** Read by k6. */
export const handleSummary = summariesOf('mixed')
