// Entry point: `main.ts ROLE`. Loads only that role. Exits with 0, with 1 for a failure, or with 2
// for wrong usage or configuration.
import { type Roles, runProgram } from './process/run-program.ts'

const roles: Roles = {
  standalone: [
    'the whole service in one process, with SQLite',
    () => import('./roles/standalone.ts'),
  ],
  create: ['serves the API and the pages that create links', () => import('./roles/create.ts')],
  redirect: ['redirects clients to the targets of links', () => import('./roles/redirect.ts')],
  controller: [
    'keeps the pools of codes full, in Kubernetes',
    () => import('./roles/controller.ts'),
  ],
  refill: ['generates codes for a pool, as a Job', () => import('./roles/refill.ts')],
  migrate: ['creates or upgrades the tables in Cassandra', () => import('./roles/migrate.ts')],
  ratelimit: ['the rate-limit service for Envoy', () => import('./roles/ratelimit.ts')],
  drain: ['drains Envoy before its pod stops', () => import('./roles/drain.ts')],
  'ratelimit-check': [
    'checks rule files of the role ratelimit',
    () => import('./roles/ratelimit-check.ts'),
  ],
  'wait-for-codes': [
    'waits until a pool has its first codes',
    () => import('./roles/wait-for-codes.ts'),
  ],
  smoke: ['tests a running service as a client', () => import('./roles/smoke.ts')],
  export: ['writes all links to stdout', () => import('./roles/export.ts')],
  import: ['imports links of a file', () => import('./roles/import.ts')],
  link: ['lists, shows, disables, enables or deletes links', () => import('./roles/link.ts')],
  limit: ['shows what the limiters deny', () => import('./roles/limit.ts')],
  key: ['creates, lists or revokes API keys', () => import('./roles/key.ts')],
  block: ['changes or lists the blocked targets', () => import('./roles/block.ts')],
  pool: [
    'shows how many codes the pools contain; raises them after a restore',
    (subcommand) =>
      subcommand === 'raise' ? import('./roles/raise-pools.ts') : import('./roles/pool.ts'),
  ],
}

/** The program in the image of envoyproxy/ratelimit, which commands of containers name. */
const reference = {
  program: '/bin/ratelimit',
  role: 'ratelimit',
  // Its responses, unless these settings are set.
  defaults: { LIMIT_CLIENT_HEADERS: 'false', LIMIT_METADATA: 'false', LIMIT_TOP_VALUES: 'false' },
} as const

await runProgram(roles, { args: process.argv.slice(2), env: process.env, alias: reference })
