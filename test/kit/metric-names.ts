// Names of metrics, as a scrape shows them and as the catalogue has them.

/** How those begin that only a controller counts: it needs an API server of Kubernetes. */
const controllers = [
  'workqueue_',
  'controller_runtime_',
  'leader_election_',
  'rest_client_',
  'curtail_kube_',
  'curtail_codepool_',
  'curtail_refill_',
  'curtail_controller_',
]

/** Whether only the controller counts it. */
export function isOfController(name: string): boolean {
  return controllers.some((begin) => name.startsWith(begin))
}

/** The metrics that have a value in a scrape; a histogram by its own name too. */
export function observedNames(scrape: string): ReadonlySet<string> {
  const names = scrape.split('\n').flatMap((line) => {
    const name = /^[a-z]\w*/.exec(line)?.[0]
    return name === undefined ? [] : [name, name.replace(/_(bucket|sum|count)$/, '')]
  })
  return new Set(names)
}
