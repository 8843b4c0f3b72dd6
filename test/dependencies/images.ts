// Images of Envoy, Redis and Cassandra for the test cluster: the files of the other dependencies,
// with the layout of the official images, so that the commands of the chart run in both. They
// contain no shell and no start scripts. For tests only.
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
/** C libraries that native libraries in jars load by name. */
const C_LIBRARIES = ['libc.so.6', 'libdl.so.2', 'libm.so.6', 'libpthread.so.0', 'librt.so.1']
const JAVA_HOME = 'opt/java/openjdk'

interface Recipe {
  readonly name: string
  readonly user: ImageUser
  readonly entrypoint: readonly string[]
  /** Copies the files into the root. */
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
      const programs = ['redis-server', 'redis-cli'].map((name) => join('/usr/bin', name))
      for (const path of programs) await addFile(root, path, path.replace('/bin', '/local/bin'))
      await addLibraries(root, programs)
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

/** Builds every image into `folder`. Resolves with the paths of the archives. */
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
    await writeImage({ architecture: 'amd64', config, layers: [layer] }, [name], path)
    await rm(work, { recursive: true })
    paths.push(path)
  }
  return paths
}

async function fillCassandra(root: string): Promise<void> {
  const { path } = await findJava()
  const args = ['-XshowSettings:properties', '-version']
  const { stderr } = await run(path, args, { timeout: PROBE_MS_MAX })
  const home = /java\.home = (\S+)/.exec(stderr)?.[1]
  if (home === undefined) throw new Error(`${path} does not report java.home`)
  for (const name of ['bin', 'conf', 'lib', 'release']) {
    // Debian has symlinks to files of packages that are not installed.
    const options = { recursive: true, dereference: true, filter: existsSync } as const
    await cp(join(home, name), join(root, JAVA_HOME, name), options)
  }
  const binaries = ['bin/java', 'lib/libjli.so', 'lib/server/libjvm.so'].map((name) =>
    join(home, name),
  )
  await addLibraries(root, binaries, home)
  for (const name of C_LIBRARIES) {
    const library = join('/lib/x86_64-linux-gnu', name)
    await addFile(root, library, library)
  }
  const jars = (await findCassandraJars()).split(':')
  for (const jar of jars)
    await cp(jar, join(root, 'opt/cassandra/lib', jar.split('/').at(-1) ?? ''))
  const count = (await readdir(join(root, 'opt/cassandra/lib'))).length
  if (count !== jars.length) throw new Error('two jars of Cassandra have the same name')
}
