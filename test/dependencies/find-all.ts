// Finds every dependency of the tests, and downloads or builds the missing ones before the tests,
// so that no test's time-out includes a build. Each dependency keeps its own bound.
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
import { findKubeconform } from './kubeconform.ts'
import { findKubernetesSchemas } from './kubernetes-schemas.ts'
import { findKubernetes } from './kubernetes.ts'
import { findPrometheus } from './prometheus.ts'
import { findStrace } from './strace.ts'

const startedMs = performance.now()

function print(line: string): void {
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0)
  process.stdout.write(`[${seconds.padStart(4)} s] ${line}\n`)
}

type Part = readonly [name: string, find: () => Promise<unknown>]

/** What is fetched; one after the other, for most go through apt's one lock. */
const fetched: readonly Part[] = [
  ['redis-server', () => findAptDependency('redis-server')],
  ['openssl', () => findAptDependency('openssl', ['version'])],
  ['curl', findCurl],
  ['strace', findStrace],
  ['chromium', findChromium],
  ['java', findJava],
  ['the jars of Cassandra', findCassandraJars],
  ['prometheus', findPrometheus],
  ['envoy', findEnvoy],
  ...helmMajors.map((major): Part => [`helm ${major}`, () => findHelm(major)]),
  ['the schemas of Kubernetes', findKubernetesSchemas],
  ['kubeconform', findKubeconform],
]
/** What is built, on all cores. */
const built: readonly Part[] = [
  ['kubernetes', () => findKubernetes(print)],
  ['k6', findK6],
  ['collector', findCollector],
  ['h2spec and grpcurl', findHttp2Tools],
]

/** Finds them in order; reports one that is unavailable with the reason, and fails the run. */
async function findEach(parts: readonly Part[]): Promise<void> {
  for (const [name, find] of parts) {
    try {
      await find()
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

await Promise.all([findEach(fetched), findEach(built)])
// Created by a running node, which would be slow during a build.
const archive = async () => findArchive(await findJava(), await findCassandraJars())
await findEach([['the archive of Cassandra’s classes', archive]])
