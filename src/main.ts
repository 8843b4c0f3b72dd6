// Entry point: `main.ts ROLE`. Loads only that role. Exits with 0, with 1 for a failure, or with 2
// for wrong usage or configuration.
import { type RoleGroups, runProgram } from './process/run-program.ts'

const roles: RoleGroups = {
  Services: {
    standalone: [
      'the whole service in one process, with SQLite',
      () => import('./roles/standalone.ts'),
    ],
    create: ['serves the API and the pages that create links', () => import('./roles/create.ts')],
    redirect: ['redirects clients to the targets of links', () => import('./roles/redirect.ts')],
    ratelimit: ['the rate-limit service for Envoy', () => import('./roles/ratelimit.ts')],
    controller: [
      'refills the pools and applies RateLimitPolicies, in Kubernetes',
      () => import('./roles/controller.ts'),
    ],
    drain: ['drains Envoy before its pod stops', () => import('./roles/drain.ts')],
  },
  Jobs: {
    migrate: ['creates or upgrades the tables in Cassandra', () => import('./roles/migrate.ts')],
    refill: ['generates codes for a pool', () => import('./roles/refill.ts')],
    'wait-for-codes': [
      'waits until a pool has its first codes',
      () => import('./roles/wait-for-codes.ts'),
    ],
  },
  Commands: {
    link: [
      'creates, lists, shows, disables, enables or deletes links',
      () => import('./roles/link.ts'),
    ],
    report: ['lists or shows reports of abuse', () => import('./roles/report.ts')],
    key: ['creates, lists or revokes API keys', () => import('./roles/key.ts')],
    block: ['changes or lists the blocked targets', () => import('./roles/block.ts')],
    pool: [
      'shows how many codes the pools contain; raises them after a restore',
      {
        status: () => import('./roles/pool.ts'),
        raise: () => import('./roles/raise-pools.ts'),
      },
    ],
    limit: ['shows what the limiters deny; resets counters', () => import('./roles/limit.ts')],
    import: ['imports links from a file', () => import('./roles/import.ts')],
    export: ['writes all links to stdout', () => import('./roles/export.ts')],
    'ratelimit-check': [
      'checks rule files of the role ratelimit',
      () => import('./roles/ratelimit-check.ts'),
    ],
    smoke: ['tests a running service as a client', () => import('./roles/smoke.ts')],
  },
}

/** The program in the image of envoyproxy/ratelimit, as the commands of containers name it. */
const reference = {
  program: '/bin/ratelimit',
  role: 'ratelimit',
  // Its responses are those of envoyproxy/ratelimit, unless these settings are set.
  defaults: { LIMIT_CLIENT_HEADERS: 'false', LIMIT_METADATA: 'false', LIMIT_TOP_VALUES: 'false' },
} as const

await runProgram(roles, { args: process.argv.slice(2), env: process.env, alias: reference })
