// An Envoy with one public listener in front of a server of the test, and its drain sidecar, both
// as real processes. Envoy reads its pods from a file, which tests can change.
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findEnvoy, type RunningEnvoy, startEnvoy } from '../../dependencies/envoy.ts'
import { type RoleProcess, startRole } from '../processes/role-process.ts'
import { withinDeadline } from '../wait-for.ts'

/** Longer than any drain timeout of the tests. */
const DRAIN_MS_MAX = 30_000

/** An Envoy and its sidecar. */
export interface DrainedEnvoy extends RunningEnvoy {
  /** The port of its public listener. */
  readonly port: number
  readonly sidecar: RoleProcess
  /** Starts another sidecar, after the first has exited. */
  startSidecar(): Promise<RoleProcess>
  /** Sends SIGTERM to the sidecar; resolves with its exit code and the fields of its drain log. */
  drain(): Promise<Record<string, unknown>>
  /** Sends a request to the port of the sidecar. */
  request(path: string, method?: string): Promise<Response>
  /** Sets the port of the only redirect pod; without a port, no pod exists. */
  setPods(to: number | undefined): Promise<void>
  /** Stops both, unless they have exited. */
  close(): Promise<void>
}

/** Starts both, in front of a server at the port `to` if it is set. */
export async function startDrainedEnvoy(
  to: number | undefined,
  env: Readonly<Record<string, string>> = {},
): Promise<DrainedEnvoy> {
  const drains = ['--drain-time-s', '60']
  const path = await findEnvoy()
  const folder = await mkdtemp(join(tmpdir(), 'curtail-envoy-'))
  const podsFile = join(folder, 'pods.json')
  const setPods = async (port: number | undefined) => {
    await writeFile(`${podsFile}.new`, podsAt(port))
    await rename(`${podsFile}.new`, podsFile) // Envoy reloads only after a rename
  }
  let envoy: RunningEnvoy | undefined
  try {
    await setPods(to)
    const started = await startEnvoy({ path, configYaml: bootstrapOf(podsFile), args: drains })
    envoy = started
    const sidecars: RoleProcess[] = []
    const startSidecar = async () => {
      const settings = { DRAIN_PORT: '0', ENVOY_ADMIN_URL: started.adminUrl, ...env }
      const one = await startRole({ role: 'drain', env: settings })
      sidecars.push(one)
      return one
    }
    const sidecar = await startSidecar()
    const url = `http://127.0.0.1:${String(sidecar.ready['port'])}`
    const listeners = await (await fetch(`${started.adminUrl}/listeners`)).text()
    return {
      ...started,
      port: Number(/^edge::.*:(\d+)$/m.exec(listeners)?.[1]),
      sidecar,
      startSidecar,
      request: (at, method = 'GET') => fetch(`${url}${at}`, { method }),
      setPods,
      async drain() {
        sidecar.child.kill('SIGTERM')
        const exitCode = await withinDeadline('the drain to complete', sidecar.exited, DRAIN_MS_MAX)
        return { ...sidecar.log.find(({ msg }) => msg === 'drain of Envoy completed'), exitCode }
      },
      async close() {
        await started.stop()
        for (const one of sidecars) await one.stop()
        await rm(folder, { recursive: true, force: true })
      },
    }
  } catch (error) {
    await envoy?.stop()
    await rm(folder, { recursive: true })
    throw error
  }
}

/** Starts a server that responds to `/` after a few ms, and to `/held` once released. */
export async function startUpstream(): Promise<{
  readonly port: number
  /** The number of held requests. */
  held(): number
  release(): void
  close(): void
}> {
  const held: (() => void)[] = []
  const server: Server = createServer((req, res) => {
    const respond = () => res.end('served')
    if (req.url === '/held') held.push(respond)
    else setTimeout(respond, 5)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    held: () => held.length,
    release() {
      for (const respond of held.splice(0)) respond()
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

const REDIRECT = { name: 'redirect', type: 'EDS' }
const atPort = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } })
const typeOf = (name: string) => ({ '@type': `type.googleapis.com/envoy.${name}` })

/** The EDS resource with the redirect pods. */
function podsAt(port: number | undefined): string {
  const pods = port === undefined ? [] : [{ endpoint: { address: atPort(port) } }]
  const assignment = {
    ...typeOf('config.endpoint.v3.ClusterLoadAssignment'),
    cluster_name: REDIRECT.name,
    endpoints: [{ lb_endpoints: pods }],
  }
  return JSON.stringify({ version_info: String(port), resources: [assignment] })
}

function bootstrapOf(podsFile: string): string {
  const route = { match: { prefix: '/' }, route: { cluster: REDIRECT.name, timeout: '60s' } }
  const manager = {
    ...typeOf('extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'),
    stat_prefix: 'edge',
    codec_type: 'AUTO',
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
    http_filters: [
      {
        name: 'envoy.filters.http.router',
        typed_config: typeOf('extensions.filters.http.router.v3.Router'),
      },
    ],
  }
  const filter = { name: 'envoy.filters.network.http_connection_manager', typed_config: manager }
  const create = { lb_endpoints: [{ endpoint: { address: atPort(1) } }] } // gets no request
  return JSON.stringify({
    node: { id: 'edge', cluster: 'edge' },
    admin: { address: atPort(0) },
    static_resources: {
      listeners: [{ name: 'edge', address: atPort(0), filter_chains: [{ filters: [filter] }] }],
      clusters: [
        {
          ...REDIRECT,
          eds_cluster_config: { eds_config: { path_config_source: { path: podsFile } } },
        },
        {
          name: 'create',
          type: 'STATIC',
          load_assignment: { cluster_name: 'create', endpoints: [create] },
        },
      ],
    },
  })
}
