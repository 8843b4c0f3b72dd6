// Downloads or builds the missing dependencies before the tests, so that the timeout of a test does
// not include a build. Each dependency has its own deadline.
import { architectures, findAvailablePackages, findNode } from '../../k8s/image/base-packages.ts'
import { findAptDependency } from './apt.ts'
import { findArchive } from './cassandra-archive.ts'
import { findCassandraJars } from './cassandra-jars.ts'
import { findChromium } from './chromium.ts'
import { findCollector } from './collector.ts'
import { findCurl } from './curl.ts'
import { findEnvoy } from './envoy.ts'
import { findHelm, helmMajors } from './helm.ts'
import { findHttp2Tools } from './http2-tools.ts'
import { findJava } from './java.ts'
import { findK6 } from './k6.ts'
import { findKubeScore } from './kube-score.ts'
import { findKubeconform } from './kubeconform.ts'
import { findCrdSchemas } from './crd-schemas.ts'
import { findKubernetesSchemas } from './kubernetes-schemas.ts'
import { findKubernetes } from './kubernetes.ts'
import { findLastRelease } from './last-release.ts'
import { findPrometheus } from './prometheus.ts'
import { redisServers } from './redis-servers.ts'
import { findReleaseTools } from './release-tools.ts'
import { findShellcheck } from './shellcheck.ts'
import { findStrace } from './strace.ts'
import { findZsh } from './zsh.ts'

const startedMs = performance.now()

function print(line: string): void {
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0)
  process.stdout.write(`[${seconds.padStart(4)} s] ${line}\n`)
}

type Dependency = readonly [name: string, find: () => Promise<unknown>]

/** Downloads, which run sequentially because most need the lock of apt. */
const downloads: readonly Dependency[] = [
  ...redisServers.map(({ name, find }): Dependency => [name, find]),
  ['openssl', () => findAptDependency('openssl', ['version'])],
  ['curl', findCurl],
  ['strace', findStrace],
  ['zsh', findZsh],
  ['chromium', findChromium],
  ['java', findJava],
  ['the jars of Cassandra', findCassandraJars],
  ['prometheus', findPrometheus],
  ['envoy', findEnvoy],
  ...helmMajors.map((major): Dependency => [`helm ${major}`, () => findHelm(major)]),
  ['the schemas of Kubernetes', findKubernetesSchemas],
  ['the schemas of other projects', findCrdSchemas],
  ['kubeconform', findKubeconform],
  ['shellcheck', findShellcheck],
  ['the base of the image', findImageBase],
]
/** Builds, each of which uses all cores. */
const builds: readonly Dependency[] = [
  ['kubernetes', () => findKubernetes(print)],
  ['k6', findK6],
  ['collector', findCollector],
  ['h2spec and grpcurl', findHttp2Tools],
  ['the tools for releases', findReleaseTools],
  ['kube-score', findKubeScore],
  ['the last release', findLastRelease],
]

async function findImageBase(): Promise<void> {
  const packages = await findAvailablePackages(architectures)
  for (const architecture of architectures) await findNode(architecture, packages)
}

/**
 * Finds each dependency, with one retry, because a registry may be overloaded; prints the reason if
 * one is unavailable, and fails the run.
 */
async function findEach(dependencies: readonly Dependency[]): Promise<void> {
  for (const [name, find] of dependencies) {
    try {
      await find().catch(find)
    } catch (error) {
      process.exitCode = 1
      print(`${name} is unavailable: ${reasonOf(error)}`)
    }
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${error.message}: ${reasonOf(error.cause)}`
}

await Promise.all([findEach(downloads), findEach(builds)])
// A running node creates the archive, which would be slow during a build.
const archive = async () => findArchive(await findJava(), await findCassandraJars())
await findEach([['the class archive of Cassandra', archive]])
