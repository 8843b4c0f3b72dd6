// An Envoy with one public listener before a server of the test's own, and the companion that
// drains it, both as real processes.
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { findEnvoy, type RunningEnvoy, startEnvoy } from '../parts/envoy.ts'
import { type RoleProcess, startRole } from './role-process.ts'

/** An Envoy and its companion. */
export interface DrainedEnvoy extends RunningEnvoy {
  /** Where it serves. */
  readonly port: number
  readonly companion: RoleProcess
  /** Asks the companion. */
  ask(path: string, method?: string): Promise<Response>
  /** Ends both. */
  close(): Promise<void>
}

/** Starts both, before the server at `to`. */
export async function startDrainedEnvoy(
  to: number,
  env: Readonly<Record<string, string>> = {},
): Promise<DrainedEnvoy> {
  const drains = ['--drain-time-s', '60']
  const path = await findEnvoy()
  const envoy = await startEnvoy({ path, configYaml: bootstrapBefore(to), args: drains })
  try {
    const companion = await startRole({
      role: 'drain',
      env: { DRAIN_PORT: '0', ENVOY_ADMIN_URL: envoy.adminUrl, ...env },
    })
    const url = `http://127.0.0.1:${String(companion.ready['port'])}`
    const listeners = await (await fetch(`${envoy.adminUrl}/listeners`)).text()
    return {
      ...envoy,
      port: Number(/^edge::.*:(\d+)$/m.exec(listeners)?.[1]),
      companion,
      ask: (at, method = 'GET') => fetch(`${url}${at}`, { method }),
      async close() {
        await envoy.stop()
        await companion.stop()
      },
    }
  } catch (error) {
    await envoy.stop()
    throw error
  }
}

/** A server that answers `/` after a few ms, and `/held` once it is let go. */
export async function startUpstream(): Promise<{
  readonly port: number
  /** How many requests are held. */
  held(): number
  letGo(): void
  close(): void
}> {
  const held: (() => void)[] = []
  const server: Server = createServer((req, res) => {
    const answer = () => res.end('answered')
    if (req.url === '/held') held.push(answer)
    else setTimeout(answer, 5)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    held: () => held.length,
    letGo() {
      for (const answer of held.splice(0)) answer()
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

function bootstrapBefore(to: number): string {
  const type = (name: string) => ({ '@type': `type.googleapis.com/envoy.extensions.${name}` })
  const at = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } })
  const route = { match: { prefix: '/' }, route: { cluster: 'upstream', timeout: '60s' } }
  const manager = {
    ...type('filters.network.http_connection_manager.v3.HttpConnectionManager'),
    stat_prefix: 'edge',
    codec_type: 'AUTO',
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
    http_filters: [
      {
        name: 'envoy.filters.http.router',
        typed_config: type('filters.http.router.v3.Router'),
      },
    ],
  }
  const filter = { name: 'envoy.filters.network.http_connection_manager', typed_config: manager }
  return JSON.stringify({
    admin: { address: at(0) },
    static_resources: {
      listeners: [{ name: 'edge', address: at(0), filter_chains: [{ filters: [filter] }] }],
      clusters: [
        {
          name: 'upstream',
          type: 'STATIC',
          load_assignment: {
            cluster_name: 'upstream',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: at(to) } }] }],
          },
        },
      ],
    },
  })
}
