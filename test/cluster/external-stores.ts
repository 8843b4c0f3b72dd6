// Stores outside a release: a Cassandra node and two Redis servers in their own namespace, with TLS
// and authentication. Their Secrets for the release have the names in values-production.yaml.
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import cassandra from 'cassandra-driver'
import { parse } from 'yaml'
import { type Authority, createAuthority, type Issued } from '../kit/ratelimit/grpc-certificates.ts'
import { waitFor } from '../kit/wait-for.ts'
import { applyObjects, getObject, kubectl } from './cluster.ts'
import { restrictedPod, serviceOf } from './pods.ts'

const READY_MS_MAX = 180_000
const QUERY_MS_MAX = 10_000
const CONFIG = '/etc/curtail-cassandra'
const files = new URL('../../charts/curtail/files/cassandra/', import.meta.url)
/** The role of the service, in each store. */
const USER = 'curtail'
const DATA_CENTER = 'dc1'

/** Stores that start. */
export interface ExternalStores {
  /** The chart's values that select them. */
  readonly values: object
  /** Resolves once every store is ready and has the role of the service. */
  readonly ready: () => Promise<void>
}

/** Starts the stores in one namespace, and creates the Secrets of a release in another. */
export async function startStores(namespace: string, ofRelease: string): Promise<ExternalStores> {
  const authority = createAuthority('stores')
  const password = randomBytes(16).toString('hex')
  const hostOf = (name: string) => `${name}.${namespace}.svc.cluster.local`
  const store = { authority, password, hostOf }
  await applyAll(namespace, [
    ...(await cassandraNode(store)),
    ...redisServer('cache', 'allkeys-lfu', store),
    ...redisServer('counters', 'noeviction', store),
  ])
  const client = authority.issue(['curtail'])
  const ca = { 'ca.crt': authority.cert }
  await applyAll(ofRelease, [
    secret('cassandra-login', { username: USER, password }),
    secret('cassandra-tls', { ...ca, 'tls.crt': client.cert, 'tls.key': client.key }),
    secret('redis-cache', { url: `rediss://${USER}:${password}@${hostOf('cache')}:6379` }),
    secret('redis-counters', { url: `${hostOf('counters')}:6379`, auth: `${USER}:${password}` }),
    secret('redis-ca', ca),
  ])
  const ready = async () => {
    const pods = ['pod/cassandra', 'pod/cache', 'pod/counters', '--namespace', namespace]
    await kubectl('wait', ...pods, '--for=condition=Ready', '--timeout=180s')
    const { status } = await getObject<{ status: { podIP: string } }>(
      ...['pod', 'cassandra', '--namespace', namespace],
    )
    await createRole(status.podIP, { password, tls: { ca: authority.cert, ...client } })
  }
  return { values: valuesOf(hostOf('cassandra')), ready }
}

interface Store {
  readonly authority: Authority
  readonly password: string
  readonly hostOf: (name: string) => string
}

function valuesOf(cassandraHost: string): object {
  const external = { caSecret: 'redis-ca' }
  return {
    cassandra: {
      mode: 'external',
      localDataCenter: DATA_CENTER,
      replication: `${DATA_CENTER}:1`,
      auth: { existingSecret: 'cassandra-login' },
      tls: { enabled: true, existingSecret: 'cassandra-tls', clientCertificate: true },
      external: { contactPoints: [cassandraHost] },
    },
    cache: { mode: 'external', external: { ...external, existingSecret: 'redis-cache' } },
    counters: {
      mode: 'external',
      external: { ...external, existingSecret: 'redis-counters', authKey: 'auth', tls: true },
    },
  }
}

function secret(name: string, stringData: Readonly<Record<string, string>>) {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData }
}

async function applyAll(namespace: string, objects: readonly { metadata: object }[]) {
  const items = objects.map((one) => ({ ...one, metadata: { ...one.metadata, namespace } }))
  await applyObjects({ apiVersion: 'v1', kind: 'List', items })
}

/** A pod with its Service, and its Secret with `contents` mounted at `folder`. */
function serverPod(
  name: string,
  given: {
    readonly command: readonly string[]
    readonly port: number
    readonly folder: string
    readonly contents: Readonly<Record<string, string>>
    readonly volumes: Readonly<Record<string, string>>
  },
) {
  const { command, port, folder, contents, volumes } = given
  const image = `localhost/${name === 'cassandra' ? name : 'redis'}:test`
  const pod = restrictedPod(name, { image, command })
  const server = {
    ...pod.spec.containers[0],
    readinessProbe: { tcpSocket: { port }, periodSeconds: 1 },
    volumeMounts: [
      { name: 'config', mountPath: folder },
      ...Object.entries(volumes).map(([volume, mountPath]) => ({ name: volume, mountPath })),
    ],
  }
  const emptied = Object.keys(volumes).map((volume) => ({ name: volume, emptyDir: {} }))
  const config = { name: 'config', secret: { secretName: name, defaultMode: 0o440 } }
  return [
    secret(name, contents),
    { ...pod, spec: { ...pod.spec, containers: [server], volumes: [config, ...emptied] } },
    serviceOf(name, { port, targetPort: port }),
  ]
}

/** A node with the chart's files for the bundled Cassandra. It requires client certificates. */
async function cassandraNode({ authority, hostOf }: Store) {
  const read = (name: string) => readFile(new URL(name, files), 'utf8')
  const { key, cert } = authority.issue([hostOf('cassandra')])
  const settings = {
    ...(parse(await read('cassandra.yaml')) as object),
    cluster_name: 'external',
    num_tokens: 1, // a faster start
    authenticator: 'PasswordAuthenticator',
    client_encryption_options: {
      enabled: true,
      require_client_auth: 'true',
      ssl_context_factory: {
        class_name: 'org.apache.cassandra.security.PEMBasedSslContextFactory',
        parameters: { private_key: key + cert, trusted_certificates: authority.cert },
      },
    },
    seed_provider: [
      {
        class_name: 'org.apache.cassandra.locator.SimpleSeedProvider',
        parameters: [{ seeds: 'cassandra' }],
      },
    ],
  }
  return serverPod('cassandra', {
    command: [
      ...['/opt/java/openjdk/bin/java', `@${CONFIG}/jvm.options`, '-Xms512M', '-Xmx512M'],
      // A fast start: no optimizing compiler, and no waits of a node that is alone.
      ...['-XX:TieredStopAtLevel=1', '-Dcassandra.skip_wait_for_gossip_to_settle=0'],
      '-Dcassandra.superuser_setup_delay_ms=0',
      ...['-cp', `${CONFIG}:/opt/cassandra/lib/*`],
      'org.apache.cassandra.service.CassandraDaemon',
    ],
    port: 9042,
    folder: CONFIG,
    contents: {
      'cassandra.yaml': JSON.stringify(settings),
      'cassandra-rackdc.properties': `dc=${DATA_CENTER}\nrack=rack1\n`,
      'jvm.options': await read('jvm.options'),
      'logback.xml': await read('logback.xml'),
    },
    volumes: { data: '/var/lib/cassandra', tmp: '/tmp' },
  })
}

function redisServer(name: string, policy: string, { authority, password, hostOf }: Store) {
  const { cert, key } = authority.issue([hostOf(name)])
  const lines = [
    ...['port 0', 'tls-port 6379', 'tls-auth-clients no', 'bind * -::*', 'dir /data'],
    ...['tls-cert-file /etc/redis/tls.crt', 'tls-key-file /etc/redis/tls.key'],
    ...['tls-ca-cert-file /etc/redis/ca.crt', 'save ""', 'appendonly no'],
    ...['maxmemory 64mb', `maxmemory-policy ${policy}`],
    ...['user default off', `user ${USER} on >${password} ~* &* +@all`],
  ]
  return serverPod(name, {
    command: ['/usr/local/bin/redis-server', '/etc/redis/redis.conf'],
    port: 6379,
    folder: '/etc/redis',
    contents: {
      'redis.conf': `${lines.join('\n')}\n`,
      ...{ 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert },
    },
    volumes: { data: '/data' },
  })
}

/** Creates the role of the service. The node creates the superuser after it opens its port. */
async function createRole(
  address: string,
  { password, tls }: { password: string; tls: Issued & { readonly ca: string } },
): Promise<void> {
  const connect = async () => {
    const client = new cassandra.Client({
      contactPoints: [address],
      localDataCenter: DATA_CENTER,
      credentials: { username: 'cassandra', password: 'cassandra' },
      // Connections go to the address, which the certificate does not contain.
      sslOptions: { ...tls, checkServerIdentity: () => undefined },
      socketOptions: { connectTimeout: QUERY_MS_MAX, readTimeout: QUERY_MS_MAX },
    })
    try {
      const options = `WITH PASSWORD = '${password}' AND LOGIN = true`
      await client.execute(`CREATE ROLE IF NOT EXISTS ${USER} ${options}`)
      return true
    } catch (error) {
      lastError = error
      return false
    } finally {
      await client.shutdown()
    }
  }
  let lastError: unknown
  await waitFor('the role in Cassandra', connect, READY_MS_MAX).catch((error: unknown) => {
    throw new Error(String(error), { cause: lastError })
  })
}
