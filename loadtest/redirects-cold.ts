// k6: links that nobody has followed for long, each in its turn, so that the answer comes from the
// shared cache or from the store; from the store alone where there are more links (`LINKS`,
// `CODES_FILE`) than arrivals.
import { scenario } from 'k6/execution'
import { addressOf, checkRedirect, codeAt, resolveCode, type Links, createLinks } from './clients.ts'
import { arrivals, redirectThresholds, wholeLoad, trends } from './shapes.ts'
import { summariesOf } from './summaries.ts'

/** Read by k6. */
export const options = {
  summaryTrendStats: trends,
  scenarios: { redirects_cold: arrivals(1) },
  thresholds: { ...wholeLoad, ...redirectThresholds('redirects_cold') },
}

/** Read by k6. */
export const setup = createLinks

/** Read by k6: one arrival. */
export default function redirectCold(links: Links): void {
  const at = scenario.iterationInTest
  checkRedirect(resolveCode(codeAt(links, at), addressOf(at)))
}

/** Read by k6. */
export const handleSummary = summariesOf('redirects-cold')
