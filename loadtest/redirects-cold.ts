// k6: rarely requested links, each in turn, so that the shared cache or the store serves the
// redirects; only the store if there are more links (`LINKS`, `CODES_FILE`) than arrivals.
import { scenario } from 'k6/execution'
import {
  addressOf,
  checkRedirect,
  codeAt,
  createLinks,
  type Links,
  resolveCode,
} from './clients.ts'
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
