// Runs Prometheus next to the release: it discovers the pods over HTTP from the API server's
// objects and evaluates the chart's alerts with all durations divided.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { renderRules } from '../../charts/dashboards/alerts.ts'
import type { KubeApi } from '../../src/kube/api.ts'
import { waitFor } from '../kit/wait-for.ts'
import { startPrometheus } from '../dependencies/prometheus.ts'
import { openKubeApi } from './kube-api.ts'
import { FULL_NAME, RELEASE } from './release.ts'

const CLEAR_FOR_MS = 5000
const PODS = `/api/v1/namespaces/${RELEASE}/pods`

/** The alerts of the release. */
export interface AlertWatch {
  readonly untilFiring: (alert: string, msMax: number) => Promise<void>
  /** Waits until the alert has not fired for some seconds. */
  readonly untilClear: (alert: string, msMax: number) => Promise<void>
  readonly stop: () => Promise<void>
}

/** Starts watching; durations in the rules are divided by `divide`. */
export async function watchAlerts(divide: number): Promise<AlertWatch> {
  const rules = renderRules({ divide })
    .replaceAll('NAMESPACE', RELEASE)
    .replaceAll('RELEASE', FULL_NAME)
  const { api, close } = await openKubeApi()
  const targetServer = await servePodTargets(api)
  const closeTargetServer = () => {
    targetServer.close()
    targetServer.closeAllConnections()
    close()
  }
  const { port } = targetServer.address() as AddressInfo
  const discovery = { url: `http://127.0.0.1:${String(port)}/`, refresh_interval: '1s' }
  const scrapes = [{ job_name: 'pods', http_sd_configs: [discovery] }]
  const prometheus = await startPrometheus({ scrapes, rules }).catch((error: unknown) => {
    closeTargetServer()
    throw error
  })
  const isFiring = async (alert: string) => (await prometheus.firing()).includes(alert)
  return {
    untilFiring: (alert, msMax) => waitFor(`${alert} to fire`, () => isFiring(alert), msMax),
    async untilClear(alert, msMax) {
      let firedMs = performance.now()
      const isClear = async () => {
        if (await isFiring(alert)) firedMs = performance.now()
        return performance.now() - firedMs > CLEAR_FOR_MS
      }
      await waitFor(`${alert} to clear`, isClear, msMax)
    },
    async stop() {
      await prometheus.stop()
      closeTargetServer()
    },
  }
}

interface Container {
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[]
}

interface Pod {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> }
  readonly spec: {
    readonly containers: readonly Container[]
    readonly initContainers?: readonly Container[]
  }
  readonly status: { readonly phase: string; readonly podIP?: string }
}

/** Serves the running pods of the release that have a port named `metrics`, for HTTP discovery. */
async function servePodTargets(api: KubeApi): Promise<Server> {
  const listTargets = async () => {
    const { items } = (await api.call({ method: 'GET', path: PODS })) as { items: readonly Pod[] }
    return items.filter(({ status }) => status.phase === 'Running').flatMap(targetsOf)
  }
  const server = createServer((_, res) => {
    listTargets().then(
      (targets) => res.setHeader('Content-Type', 'application/json').end(JSON.stringify(targets)),
      // Prometheus keeps the targets that it has.
      (error: unknown) => res.writeHead(503).end(String(error)),
    )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}

function targetsOf({ metadata, spec, status }: Pod): readonly object[] {
  const containers = [...(spec.initContainers ?? []), ...spec.containers]
  const ports = containers.flatMap((one) => one.ports ?? [])
  const port = ports.find(({ name }) => name === 'metrics')?.containerPort
  if (port === undefined || status.podIP === undefined) return []
  const isEdge = metadata.labels['app.kubernetes.io/component'] === 'edge'
  const path = isEdge ? '/stats/prometheus' : '/metrics'
  const labels = { namespace: RELEASE, pod: metadata.name, __metrics_path__: path }
  return [{ targets: [`${status.podIP}:${String(port)}`], labels }]
}
