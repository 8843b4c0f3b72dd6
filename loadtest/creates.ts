// k6: creates only, one for every hundred redirects of the shape, from clients that stay within
// their limits.
import { scenario } from 'k6/execution'
import { addressOf, checkCreated, createLink } from './clients.ts'
import { arrivals, createThresholds, CREATES_SHARE, wholeLoad, trends } from './shapes.ts'
import { summariesOf } from './summaries.ts'

/** Read by k6. */
export const options = {
  summaryTrendStats: trends,
  scenarios: { creates: arrivals(CREATES_SHARE) },
  thresholds: { ...wholeLoad, ...createThresholds('creates') },
}

/** Read by k6: one arrival. */
export default function create(): void {
  checkCreated(createLink(addressOf(scenario.iterationInTest)))
}

/** Read by k6. */
export const handleSummary = summariesOf('creates')
