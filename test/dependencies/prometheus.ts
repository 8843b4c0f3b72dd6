// The dependency `prometheus`, version 2.42 or newer: the server and promtool from the package of
// Debian, extracted into the cache and not installed, so that no system service starts.
import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { waitFor } from '../kit/wait-for.ts'
import { cachedDependency } from './dependency-cache.ts'
import { freePort } from './free-ports.ts'

const run = promisify(execFile)

const VERSION_MIN = [2, 42] as const
const FETCH_MS_MAX = 300_000
const RUN_MS_MAX = 120_000
const READY_MS_MAX = 30_000
const HOUR_SECONDS = 3600

/** The folder of `prometheus` and `promtool`. Throws the reason if they are unavailable. */
export async function findPrometheus(): Promise<string> {
  const name = `prometheus-apt-${VERSION_MIN.join('.')}`
  const folder = await cachedDependency(name, async (into) => {
    const limits = { cwd: into, timeout: FETCH_MS_MAX }
    try {
      await run('apt-get', ['update'], limits)
      await run('apt-get', ['download', 'prometheus'], limits)
    } catch (error) {
      throw new Error('apt-get cannot download the package prometheus', { cause: error })
    }
    const [file = ''] = (await readdir(into)).filter((one) => one.endsWith('.deb'))
    await run('dpkg-deb', ['-x', file, into], limits)
    await rm(join(into, file))
    await checkVersion(join(into, 'usr/bin/promtool'))
  })
  return join(folder, 'usr/bin')
}

async function checkVersion(promtool: string): Promise<void> {
  const { stdout, stderr } = await run(promtool, ['--version'], { timeout: RUN_MS_MAX })
  const [, major, minor] = /version (\d+)\.(\d+)/.exec(stdout + stderr) ?? []
  const [majorMin, minorMin] = VERSION_MIN
  const isSupported =
    Number(major) > majorMin || (Number(major) === majorMin && Number(minor) >= minorMin)
  if (isSupported) return
  throw new Error(
    `promtool ${VERSION_MIN.join('.')} or newer is required: the package contains ${stdout}`,
  )
}

/** Runs promtool. Returns its exit code, and its output on both streams. */
export async function runPromtool(
  args: readonly string[],
): Promise<{ code: number; output: string }> {
  const promtool = join(await findPrometheus(), 'promtool')
  const result = await run(promtool, args, { timeout: RUN_MS_MAX }).catch((error: unknown) => {
    const { code, stdout = '', stderr = '' } = error as Record<string, string | undefined>
    return { code: Number(code ?? 1), stdout, stderr }
  })
  return { code: 'code' in result ? result.code : 0, output: result.stdout + result.stderr }
}

/** A scraped process. */
export interface Target {
  readonly address: string
  readonly path: string
  /** Labels such as `namespace` and `pod`. */
  readonly labels: Readonly<Record<string, string>>
}

/** One series of a query result. */
interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [number, string]
}

/** An exemplar, whose labels contain the id of its trace. */
interface Exemplar {
  readonly labels: Readonly<Record<string, string>>
}

/** A running Prometheus. */
export interface RunningPrometheus {
  /** The current result of an expression. Throws the error that Prometheus returns. */
  query(expression: string): Promise<readonly Sample[]>
  /** The exemplars of a series in the last hour. */
  exemplars(series: string): Promise<readonly Exemplar[]>
  /** The alerts that are firing, by their names. */
  firing(): Promise<readonly string[]>
  stop(): Promise<void>
}

/** Starts a Prometheus that scrapes, and evaluates rules, every second. */
export async function startPrometheus(given: {
  /** The `scrape_configs`. */
  scrapes: readonly object[]
  /** The YAML of a rules file. */
  rules?: string
}): Promise<RunningPrometheus> {
  const path = join(await findPrometheus(), 'prometheus')
  const folder = await mkdtemp(join(tmpdir(), 'curtail-prometheus-'))
  await writeFile(join(folder, 'rules.yaml'), given.rules ?? 'groups: []')
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(configOf(given.scrapes)))
  const address = `127.0.0.1:${String(await freePort())}`
  const files = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`]
  const exemplars = '--enable-feature=exemplar-storage'
  const args = [...files, exemplars, `--web.listen-address=${address}`, '--log.level=error']
  const child = spawn('nice', ['-n', '15', path, ...args], { stdio: 'ignore' })
  const exited = new Promise<void>((resolve) => {
    child.once('error', () => {
      resolve()
    })
    child.once('exit', () => {
      resolve()
    })
  })
  const stop = async () => {
    child.kill('SIGKILL')
    await exited
    await rm(folder, { recursive: true, force: true })
  }
  const get = async (path: string) => {
    const response = await fetch(`http://${address}${path}`, {
      signal: AbortSignal.timeout(10_000),
    })
    const { status, error, data } = (await response.json()) as Record<string, unknown>
    if (status !== 'success') throw new Error(`Prometheus at ${path}: ${String(error)}`)
    return data as Record<string, unknown>
  }
  const isReady = () =>
    fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  await waitFor('Prometheus', isReady, READY_MS_MAX).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  return {
    query: async (expression) => {
      const data = await get(`/api/v1/query?query=${encodeURIComponent(expression)}`)
      return data['result'] as readonly Sample[]
    },
    exemplars: async (series) => {
      const end = Date.now() / 1000
      const when = `start=${String(end - HOUR_SECONDS)}&end=${String(end)}`
      const found = await get(`/api/v1/query_exemplars?query=${encodeURIComponent(series)}&${when}`)
      const all = found as unknown as readonly { readonly exemplars: readonly Exemplar[] }[]
      return all.flatMap(({ exemplars }) => exemplars)
    },
    firing: async () => {
      const { alerts } = await get('/api/v1/alerts')
      const all = alerts as { state: string; labels: Record<string, string> }[]
      return all.flatMap(({ state, labels }) =>
        state === 'firing' ? [labels['alertname'] ?? ''] : [],
      )
    },
    stop,
  }
}

function configOf(scrapes: readonly object[]): object {
  return {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: ['rules.yaml'],
    scrape_configs: scrapes,
  }
}

/** The scrape configuration of one process. */
export function scrapeTarget({ address, path, labels }: Target): object {
  return {
    job_name: address,
    metrics_path: path,
    static_configs: [{ targets: [address], labels }],
  }
}
