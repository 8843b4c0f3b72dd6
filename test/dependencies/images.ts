// Images of the servers around ours, for the test cluster: what tests fetch anyway, laid out as the
// official images are (Envoy's distroless, redis, cassandra), so that the chart's explicit commands
// run in either. No shell, no start scripts; for tests alone.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type ImageConfig, writeImage, writeLayer } from '../../k8s/image/archive.ts'
import { addFile, addLibraries, createRoot, type ImageUser } from '../../k8s/image/root-folder.ts'
import { findAptDependency } from './apt.ts'
import { findCassandraJars } from './cassandra-jars.ts'
import { findEnvoy } from './envoy.ts'
import { findJava } from './java.ts'

const run = promisify(execFile)
const PROBE_MS_MAX = 20_000
/** Libraries of C that native parts of jars ask for by name. */
const C_LIBRARIES = ['libc.so.6', 'libdl.so.2', 'libm.so.6', 'libpthread.so.0', 'librt.so.1']
const JAVA_HOME = 'opt/java/openjdk'

interface Recipe {
  readonly name: string
  readonly user: ImageUser
  readonly entrypoint: readonly string[]
  /** Puts the files into the root. */
  readonly fill: (root: string) => Promise<void>
}

const recipes: readonly Recipe[] = [
  {
    name: 'localhost/envoy:test',
    user: { name: 'nonroot', id: 65_532 },
    entrypoint: ['/usr/local/bin/envoy'],
    async fill(root) {
      const envoy = await findEnvoy()
      await addFile(root, envoy, 'usr/local/bin/envoy')
      await addLibraries(root, [envoy])
    },
  },
  {
    name: 'localhost/redis:test',
    user: { name: 'redis', id: 999 },
    entrypoint: ['/usr/local/bin/redis-server'],
    async fill(root) {
      await findAptDependency('redis-server')
      const places = ['redis-server', 'redis-cli'].map((name) => join('/usr/bin', name))
      for (const place of places) await addFile(root, place, place.replace('/bin', '/local/bin'))
      await addLibraries(root, places)
      await mkdir(join(root, 'data'))
    },
  },
  {
    name: 'localhost/cassandra:test',
    user: { name: 'cassandra', id: 999 },
    entrypoint: [`/${JAVA_HOME}/bin/java`],
    fill: fillCassandra,
  },
]

/** Builds every image into `folder`; resolves to the paths of the archives. */
export async function buildServerImages(folder: string): Promise<readonly string[]> {
  const paths: string[] = []
  for (const { name, user, entrypoint, fill } of recipes) {
    const work = await mkdtemp(join(folder, 'root-'))
    const root = join(work, 'root')
    await mkdir(root)
    await createRoot(root, user)
    await fill(root)
    const layer = await writeLayer(root, join(work, 'layer.tar'))
    const config: ImageConfig = { Entrypoint: entrypoint, User: `${user.id}:${user.id}` }
    const path = join(folder, `${name.replaceAll(/[/:]/g, '-')}.tar`)
    await writeImage({ names: [name], architecture: 'amd64', config, layers: [layer] }, path)
    await rm(work, { recursive: true })
    paths.push(path)
  }
  return paths
}

async function fillCassandra(root: string): Promise<void> {
  const { path } = await findJava()
  const told = await run(path, ['-XshowSettings:properties', '-version'], { timeout: PROBE_MS_MAX })
  const home = /java\.home = (\S+)/.exec(told.stderr)?.[1]
  if (home === undefined) throw new Error(`${path} does not say where its home is`)
  for (const part of ['bin', 'conf', 'lib', 'release']) {
    // Debian links to files of packages that are not installed.
    const options = { recursive: true, dereference: true, filter: existsSync } as const
    await cp(join(home, part), join(root, JAVA_HOME, part), options)
  }
  const asking = ['bin/java', 'lib/libjli.so', 'lib/server/libjvm.so'].map((name) =>
    join(home, name),
  )
  await addLibraries(root, asking, home)
  for (const name of C_LIBRARIES) {
    const place = join('/lib/x86_64-linux-gnu', name)
    await addFile(root, place, place)
  }
  const jars = (await findCassandraJars()).split(':')
  for (const jar of jars)
    await cp(jar, join(root, 'opt/cassandra/lib', jar.split('/').at(-1) ?? ''))
  const count = (await readdir(join(root, 'opt/cassandra/lib'))).length
  if (count !== jars.length) throw new Error('two jars of Cassandra have one name')
}
