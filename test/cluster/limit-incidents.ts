// The incidents of the runbook test that concern limiters, their rules and their counters.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getObject, kubectl } from './cluster.ts'
import { queryLimiters, revokeVerb, suspendAll } from './faults.ts'
import { command, type Incident, nothingToCleanUp, restoreRelease } from './incident.ts'
import { FULL_NAME, podsOf, RELEASE, upgradeRelease } from './release.ts'

const upgradeTo = 'helm -n $NS upgrade RELEASE CHART --reuse-values --set'
const inNamespace = ['--namespace', RELEASE] as const

const restart = (component: string) =>
  kubectl('rollout', 'restart', `deployment/${FULL_NAME}-${component}`, ...inNamespace)

/** Removes the rule by which limiters connect to the controller. */
async function disconnectLimiters(): Promise<void> {
  const networkPolicy = ['networkpolicy', `${FULL_NAME}-controller`, ...inNamespace]
  const patch = JSON.stringify({ spec: { ingress: [] } })
  await kubectl('patch', ...networkPolicy, '--type=merge', '-p', patch)
}

/** Incidents of the limiters, their rules and their counters. */
export const limitIncidents: readonly Incident[] = [
  {
    title: "the counters' Redis hangs",
    alerts: ['CurtailLimiterFallback'],
    breakRelease: () => suspendAll([`${FULL_NAME}-counters-0`]),
    remedy: [command('kubectl -n $NS rollout restart statefulset/$R-counters')],
  },
  {
    title: 'every limiter hangs',
    alerts: ['CurtailLimiterUnavailable'],
    breakRelease: async () => {
      const resume = await suspendAll(await podsOf('ratelimit'))
      return async () => {
        await resume()
        await upgradeRelease()
      }
    },
    remedy: [command(`${upgradeTo} ratelimit.replicas=COUNT`)],
  },
  {
    title: 'the rules are invalid',
    alerts: ['CurtailRulesRejected'],
    breakRelease: async ({ runner }) => {
      await upgradeRelease('--set', 'ratelimit.policies.enabled=false')
      const configMap = ['configmap', `${FULL_NAME}-ratelimit`, ...inNamespace]
      const { data } = await getObject<{ data: Readonly<Record<string, string>> }>(...configMap)
      const rules = data['rate-limits.yaml'] ?? ''
      await writeFile(join(runner.folder, 'rate-limits.yaml'), rules)
      const text = `${rules}\nnonsense: true\n`
      const patch = JSON.stringify({ data: { 'rate-limits.yaml': text } })
      await kubectl('patch', ...configMap, '--type=merge', '-p', patch)
      return () => upgradeRelease()
    },
    remedy: [
      command(
        'helm -n $NS upgrade RELEASE CHART --reuse-values' +
          ' --set-file ratelimit.rules=rate-limits.yaml --server-side=true --force-conflicts',
      ),
    ],
  },
  {
    title: 'no limiter can connect to the controller',
    alerts: ['CurtailPoliciesNotProgrammed'],
    breakRelease: async () => {
      await disconnectLimiters()
      await restart('ratelimit') // connections that exist may outlive the change
      return nothingToCleanUp
    },
    remedy: [restoreRelease],
  },
  {
    title: 'a limiter has neither a connection to the controller nor a stored version',
    alerts: ['CurtailLimiterWithoutRules'],
    breakRelease: async () => {
      await disconnectLimiters()
      const secret = ['secret', `${FULL_NAME}-ratelimit-version`, ...inNamespace]
      const patch = JSON.stringify({ data: null })
      await kubectl('patch', ...secret, '--type=merge', '-p', patch)
      await restart('ratelimit')
      return nothingToCleanUp
    },
    remedy: [restoreRelease],
  },
  {
    title: 'the controller may not list RateLimitPolicies',
    alerts: ['CurtailWatchFailing'],
    breakRelease: async () => {
      await revokeVerb('ratelimitpolicies', 'list')
      await restart('controller')
      return nothingToCleanUp
    },
    remedy: [restoreRelease],
  },
  {
    title: 'a program sends the limiters requests for a domain without rules',
    alerts: ['CurtailDomainWithoutRules'],
    breakRelease: () => queryLimiters('elsewhere'),
    remedy: [],
  },
]
