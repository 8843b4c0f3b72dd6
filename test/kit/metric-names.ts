// Names of metrics in a scrape and in the catalogue.

/** Prefixes of the metrics that only the controller exposes, which requires an API server. */
const controllerPrefixes = [
  'workqueue_',
  'controller_runtime_',
  'leader_election_',
  'rest_client_',
  'curtail_kube_',
  'curtail_codepool_',
  'curtail_refill_',
  'curtail_ratelimitpolicy_',
  'curtail_ads_',
  'curtail_controller_',
]

/** Whether only the controller exposes this metric. */
export function isOfController(name: string): boolean {
  return controllerPrefixes.some((prefix) => name.startsWith(prefix))
}

/** The metrics that have a value in a scrape; includes the names of histograms themselves. */
export function observedNames(scrape: string): ReadonlySet<string> {
  const names = scrape.split('\n').flatMap((line) => {
    const name = /^[a-z]\w*/.exec(line)?.[0]
    return name === undefined ? [] : [name, name.replace(/_(bucket|sum|count)$/, '')]
  })
  return new Set(names)
}
