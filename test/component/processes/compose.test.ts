// compose.yaml: its versions, settings and mounts are those of the project, and the services start
// with its commands and environments. The same programs run here without containers: only host
// names, ports and paths differ.
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import * as z from 'zod'
import type { Role } from '../../../src/process/role.ts'
import { type Stop, stopInTurn } from '../../../src/process/stop.ts'
import { type CassandraCluster, startCassandra } from '../../dependencies/cassandra.ts'
import { findEnvoy, startEnvoy } from '../../dependencies/envoy.ts'
import { reservePorts } from '../../dependencies/free-ports.ts'
import { startRedis } from '../../dependencies/redis.ts'
import { startJob } from '../../kit/processes/role-job.ts'
import { startRole } from '../../kit/processes/role-process.ts'
import { waitFor } from '../../kit/wait-for.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../..', import.meta.url))
const SETUP_MS_MAX = 900_000
const JOB_MS_MAX = 120_000
const COMMAND_MS_MAX = 20_000

const serviceShape = z.object({
  image: z.string(),
  command: z.array(z.string()).default([]),
  profiles: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.string()).default({}),
  ports: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  restart: z.string().optional(),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  healthcheck: z.object({ test: z.array(z.string()).optional(), disable: z.boolean().optional() }),
})
const composeShape = z.object({
  services: z.record(z.string(), serviceShape),
  volumes: z.record(z.string(), z.null()),
})

const read = (path: string) => readFileSync(join(root, path), 'utf8')
const { services, volumes } = composeShape.parse(parse(read('compose.yaml'), { merge: true }))
const manifest = z.object({ version: z.string() }).parse(JSON.parse(read('package.json')))
const ours = `curtail:${manifest.version}`
const roles = Object.entries(services).filter(
  ([name, { image }]) => image === ours && name !== 'prepare',
)

/** The service with this name. */
function serviceOf(name: string): z.infer<typeof serviceShape> {
  const service = services[name]
  if (service === undefined) throw new Error(`compose.yaml has no service ${name}`)
  return service
}

async function settingsOf(role: string): Promise<string[]> {
  const module = (await import(`../../../src/roles/${role}.ts`)) as { role: Role }
  return Object.keys(module.role.settings)
}

test('the default service is standalone, and every other one has the profile stack', () => {
  const byDefault = Object.keys(services).filter((name) => serviceOf(name).profiles.length === 0)
  expect(byDefault).toEqual(['standalone'])
})

test('the images have the versions of the charts', () => {
  const image = z.object({ repository: z.string(), tag: z.string() })
  const values = z
    .object({
      edge: z.object({ image }),
      cassandra: z.object({ bundled: z.object({ image }) }),
      cache: z.object({ bundled: z.object({ image }) }),
    })
    .parse(parse(read('charts/curtail/values.yaml')))
  const nameOf = ({ repository, tag }: z.infer<typeof image>) => `${repository}:${tag}`
  const redis = nameOf(values.cache.bundled.image)
  // The distroless image of Envoy has no shell for the health check.
  const envoy = nameOf(values.edge.image).replace(':distroless-', ':')
  const others = { cassandra: nameOf(values.cassandra.bundled.image), edge: envoy }
  const expected: Record<string, string> = { ...others, cache: redis, counters: redis }
  for (const [name, service] of Object.entries(services))
    expect([name, service.image]).toEqual([name, expected[name] ?? ours])
})

test.each(roles)('%s: every variable is a setting of its role', async (_, service) => {
  const [role = ''] = service.command
  expect(await settingsOf(role)).toEqual(expect.arrayContaining(Object.keys(service.environment)))
})

test.each(Object.entries(services))('%s: ports, mounts and dependencies', (_, service) => {
  for (const port of service.ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/)
  for (const volume of service.volumes) {
    const [source = ''] = volume.split(':')
    const exists = source.startsWith('./') ? existsSync(join(root, source)) : source in volumes
    expect([volume, exists]).toEqual([volume, true])
  }
  const { test: check, disable } = service.healthcheck
  const isJob = service.restart === 'no'
  expect([check !== undefined && disable !== true, disable === true]).toEqual([!isJob, isJob])
  for (const [name, { condition }] of Object.entries(service.depends_on)) {
    const needed = serviceOf(name).restart === 'no' ? 'completed_successfully' : 'healthy'
    expect(condition).toBe(`service_${needed}`)
    expect(serviceOf(name).profiles).toEqual(service.profiles)
  }
})

describe('the stack', () => {
  const stops: Stop[] = []
  let folder: string
  let cluster: CassandraCluster
  /** What differs from the containers: by regular expression, its replacement here. */
  let replacements: [RegExp, string][]
  let ports: Record<'create' | 'redirect' | 'ratelimit' | 'edge' | 'metrics' | 'admin', number>

  const localized = (value: string) =>
    replacements.reduce((text, [pattern, local]) => text.replace(pattern, local), value)

  /** The environment of a service, for the processes of this test. */
  const environmentOf = (name: string): Record<string, string> => {
    const given = Object.entries(serviceOf(name).environment)
    const env = Object.fromEntries(given.map(([key, value]) => [key, localized(value)]))
    const hasCassandra = 'CASSANDRA_CONTACT_POINTS' in env
    return { ...env, ...(hasCassandra && { CASSANDRA_PORT: String(cluster.port) }) }
  }

  const succeeds = (role: string) =>
    startJob({ role, env: environmentOf(role) }).succeeded(JOB_MS_MAX)

  /** Runs the script of the service `prepare`. */
  const prepare = async (replace: (script: string) => string) => {
    const [script = ''] = serviceOf('prepare').command
    const args = ['--input-type=module', '-e', replace(localized(script))]
    await run(process.execPath, args, { timeout: COMMAND_MS_MAX })
    return join(folder, 'edge/envoy.yaml')
  }

  /** Starts Redis with the command of a service; resolves to its port. */
  const startCounters = async (name: 'cache' | 'counters') => {
    const [program, ...args] = serviceOf(name).command
    expect(program).toBe('redis-server')
    const server = await startRedis(args)
    stops.push(() => server.close())
    return server.port
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'curtail-compose-'))
    stops.push(() => rm(folder, { recursive: true }))
    for (const name of ['secret', 'edge', 'rules/config', 'data'])
      await mkdir(join(folder, name), { recursive: true })
    const flags = serviceOf('cassandra').environment['JVM_EXTRA_OPTS'] ?? ''
    cluster = await startCassandra({
      nodes: 1,
      // The defaults of the image, which the flags must override.
      settings: {
        commitlog_sync: 'periodic',
        commitlog_sync_period: '10000ms',
        commitlog_sync_group_window: '0ms',
        paxos_variant: 'v1',
        storage_compatibility_mode: 'CASSANDRA_4',
      },
      jvmFlags: flags.split(' '),
    })
    stops.push(() => cluster.stop())
    const [cache, counters] = [await startCounters('cache'), await startCounters('counters')]
    const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = await reservePorts(6)
    ports = { create: a, redirect: b, ratelimit: c, edge: d, metrics: e, admin: f }
    replacements = [
      [/^cassandra$/, cluster.contactPoints.join(',')],
      [/\bcache:6379/, `127.0.0.1:${cache}`],
      [/\bcounters:6379/, `127.0.0.1:${counters}`],
      [/\/(?=secret\/|edge\/|rules$|data$)/g, `${folder}/`],
      [/'\/envoy\//, `'${root}/envoy/`],
      [/localhost:8081/, `localhost:${ports.edge}`],
      [/^\$\{ADMIN_TOKEN:-\}$/, ''],
    ]
    const [rules = ''] = serviceOf('ratelimit').volumes
    const [source = '', target = ''] = rules.split(':')
    await mkdir(dirname(join(folder, target)), { recursive: true })
    await copyFile(join(root, source), join(folder, target))
  }, SETUP_MS_MAX)

  afterAll(async () => {
    await stopInTurn(stops.reverse())
  }, 60_000)

  test(
    'its services start in the order of their dependencies, and create and resolve a link',
    async () => {
      const rendered = await prepare((script) => script)
      const secret = await readFile(join(folder, 'secret/code'))
      const validate = ['--mode', 'validate', '--config-path', rendered, '--log-level', 'error']
      // Envoy opens its access log, /dev/stdout, also to validate.
      const quietly = ['-c', '"$0" "$@" > /dev/null', await findEnvoy(), ...validate]
      await run('sh', quietly, { timeout: COMMAND_MS_MAX })

      const migrated = await succeeds('migrate')
      expect(migrated).toContain('"msg":"migrated"')
      expect(migrated).not.toContain('"level":"warn"') // else a setting of Cassandra is wrong
      await succeeds('refill')
      for (const role of ['create', 'redirect', 'ratelimit'] as const) {
        const port = String(ports[role])
        const own =
          role === 'ratelimit' ? { GRPC_PORT: port, PORT: '0', DEBUG_PORT: '0' } : { PORT: port }
        const env = { ...environmentOf(role), ...own, ADMIN_PORT: '0' }
        const started = await startRole({ role, env })
        stops.push(() => started.stop())
        const url = `http://127.0.0.1:${String(started.ready['adminPort'])}`
        await isHealthy(role, url)
      }

      const configPath = await prepare((script) =>
        script
          .replaceAll(/host: '(create|redirect|ratelimit)', port: \d+/g, (_, name: 'create') => {
            return `host: '127.0.0.1', port: ${ports[name]}`
          })
          .replace(
            "listenAddress: '0.0.0.0'",
            `listenAddress: '127.0.0.1', httpPort: ${ports.edge}, metricsPort: ${ports.metrics}, ` +
              `adminPort: ${ports.admin}`,
          ),
      )
      expect(await readFile(join(folder, 'secret/code'))).toEqual(secret) // never replaced
      const envoy = await startEnvoy({ path: await findEnvoy(), configPath })
      stops.push(() => envoy.stop())
      await isHealthy('edge', `http://127.0.0.1:${ports.metrics}`)

      const base = `http://localhost:${ports.edge}`
      const create = () =>
        fetch(`${base}/v1/urls`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify({ long_url: 'https://example.com/' }),
        })
      // Until the limiter has been connected, Envoy uses its local limits, without these headers.
      let created = await create()
      await waitFor('a decision of the limiter', async () => {
        if (created.headers.has('x-ratelimit-limit')) return true
        created = await create()
        return false
      })
      expect(created.status).toBe(201)
      const { short_url: url } = z.object({ short_url: z.string() }).parse(await created.json())
      expect(url.startsWith(`${base}/`)).toBe(true)
      const resolved = await fetch(url, { redirect: 'manual' })
      expect([resolved.status, resolved.headers.get('location')]).toEqual([
        302,
        'https://example.com/',
      ])
    },
    SETUP_MS_MAX,
  )

  test(
    'standalone starts with its settings, and its health check succeeds',
    async () => {
      const env = { ...environmentOf('standalone'), PORT: '0', ADMIN_PORT: '0' }
      const started = await startRole({ role: 'standalone', env })
      stops.push(() => started.stop())
      await isHealthy('standalone', `http://127.0.0.1:${String(started.ready['adminPort'])}`)
      expect(existsSync(join(folder, 'data/curtail.db'))).toBe(true)
    },
    JOB_MS_MAX,
  )
})

/** Runs the health check of a service against the port of `url`. Throws if it fails. */
async function isHealthy(name: string, url: string): Promise<void> {
  const { port } = new URL(url)
  const [kind, program = '', ...args] = serviceOf(name).healthcheck.test ?? []
  expect(kind).toBe('CMD')
  const local = args.map((arg) => arg.replace(/127\.0\.0\.1([:/])9090/, `127.0.0.1$1${port}`))
  expect(local).not.toEqual(args)
  const command = program === '/nodejs/bin/node' ? process.execPath : program
  await run(command, local, { timeout: COMMAND_MS_MAX })
  const broken = args.map((arg) => arg.replace(/127\.0\.0\.1([:/])9090/, '127.0.0.1$11'))
  await expect(run(command, broken, { timeout: COMMAND_MS_MAX })).rejects.toThrow()
}
