// k6: a few popular links that all clients request. The memory of the pods serves the redirects.
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

const HOT_LINKS = 20

/** Read by k6. */
export const options = {
  summaryTrendStats: trends,
  scenarios: { redirects_hot: arrivals(1) },
  thresholds: { ...wholeLoad, ...redirectThresholds('redirects_hot') },
}

/** Read by k6. */
export const setup = createLinks

/** Read by k6: one arrival. */
export default function redirectHot(links: Links): void {
  const at = scenario.iterationInTest
  checkRedirect(resolveCode(codeAt(links, at % HOT_LINKS), addressOf(at)))
}

/** Read by k6. */
export const handleSummary = summariesOf('redirects-hot')
