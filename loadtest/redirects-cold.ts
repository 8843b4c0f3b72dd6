// k6: links that nobody has followed for long, each in its turn, so that the answer comes from the
// shared cache or from the store; from the store alone where there are more links (`LINKS`,
// `CODES_FILE`) than arrivals.
import { scenario } from 'k6/execution'
import { addressOf, checkRedirect, codeAt, followCode, type Links, makeLinks } from './clients.ts'
import { arrivals, redirectThresholds, wholeLoad, trends } from './shapes.ts'
import { summariesOf } from './summaries.ts'

/** Read by k6. */
export const options = {
  summaryTrendStats: trends,
  scenarios: { redirects_cold: arrivals(1) },
  thresholds: { ...wholeLoad, ...redirectThresholds('redirects_cold') },
}

/** Read by k6. */
export const setup = makeLinks

/** Read by k6: one arrival. */
export default function followCold(links: Links): void {
  const at = scenario.iterationInTest
  checkRedirect(followCode(codeAt(links, at), addressOf(at)))
}

/** Read by k6. */
export const handleSummary = summariesOf('redirects-cold')
