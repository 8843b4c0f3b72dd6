// A process of `create` or `redirect` for tests: its port, its metrics and its admin API.
import { type RoleOptions, type RoleProcess, startRole } from '../kit/processes/role-process.ts'

/** The bearer token that the admin API of `create` requires. */
export const ADMIN_TOKEN = 'token-of-the-stack'

/** A process that serves the public HTTP. */
export interface ServingRole extends RoleProcess {
  readonly role: 'create' | 'redirect'
  readonly port: number
  readonly adminUrl: string
  /** The sum of all series of a metric whose line contains all of `substrings`, such as labels. */
  metric(name: string, ...substrings: readonly string[]): Promise<number>
  /** Sends a request to its admin API, with the token. */
  admin(request: { method?: string; path: string }): Promise<Response>
}

/** Starts it, on free ports unless `env` names them. */
export async function startServingRole(
  options: RoleOptions & { readonly role: ServingRole['role'] },
): Promise<ServingRole> {
  const { role, env } = options
  const running = await startRole({
    ...options,
    env: { PORT: '0', ADMIN_PORT: '0', ...(role === 'create' && { ADMIN_TOKEN }), ...env },
  })
  const { port, adminPort } = running.ready
  const adminUrl = `http://127.0.0.1:${String(adminPort)}`
  return {
    ...running,
    role,
    port: Number(port),
    adminUrl,
    async metric(name, ...substrings) {
      const text = await (await fetch(`${adminUrl}/metrics`)).text()
      const lines = text.split('\n').filter((line) => {
        return (
          new RegExp(`^${name}[{ ]`).test(line) &&
          substrings.every((substring) => line.includes(substring))
        )
      })
      return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
    },
    admin({ method = 'GET', path }) {
      const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` }
      return fetch(`${adminUrl}/admin${path}`, { method, headers })
    },
  }
}
