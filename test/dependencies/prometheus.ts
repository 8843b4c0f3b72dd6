// The dependency `prometheus`: the server and promtool, of Debian's package, unpacked into the
// cache of parts and not installed: no service of the machine's own begins. 2.42 or newer.
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

/** The folder of `prometheus` and `promtool`. Throws the reason where they cannot be had. */
export async function findPrometheus(): Promise<string> {
  const name = `prometheus-apt-${VERSION_MIN.join('.')}`
  const folder = await cachedDependency(name, async (into) => {
    const limits = { cwd: into, timeout: FETCH_MS_MAX }
    try {
      await run('apt-get', ['update'], limits)
      await run('apt-get', ['download', 'prometheus'], limits)
    } catch (error) {
      throw new Error('apt-get cannot fetch the package prometheus', { cause: error })
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
  const isNew =
    Number(major) > majorMin || (Number(major) === majorMin && Number(minor) >= minorMin)
  if (isNew) return
  throw new Error(`promtool ${VERSION_MIN.join('.')} or newer is needed: this is ${stdout}`)
}

/** Runs promtool; returns its output, on both streams, and its exit code. */
export async function runPromtool(
  args: readonly string[],
): Promise<{ code: number; said: string }> {
  const promtool = join(await findPrometheus(), 'promtool')
  const ended = await run(promtool, args, { timeout: RUN_MS_MAX }).catch((error: unknown) => {
    const { code, stdout = '', stderr = '' } = error as Record<string, string | undefined>
    return { code: Number(code ?? 1), stdout, stderr }
  })
  return { code: 'code' in ended ? ended.code : 0, said: ended.stdout + ended.stderr }
}

/** A process that is scraped. */
export interface Target {
  readonly address: string
  readonly path: string
  /** Such as `namespace` and `pod`. */
  readonly labels: Readonly<Record<string, string>>
}

/** One series of an answer. */
interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [number, string]
}

/** The labels of an observation, which lead to its trace. */
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

/** Starts one that scrapes, and evaluates the rules of this text, once a second. */
export async function startPrometheus(given: {
  /** As `scrape_configs` takes them. */
  scrapes: readonly object[]
  rules?: string
}): Promise<RunningPrometheus> {
  const path = join(await findPrometheus(), 'prometheus')
  const folder = await mkdtemp(join(tmpdir(), 'curtail-prometheus-'))
  await writeFile(join(folder, 'rules.yaml'), given.rules ?? 'groups: []')
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(configOf(given.scrapes)))
  const address = `127.0.0.1:${String(await freePort())}`
  const files = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`]
  const keeps = '--enable-feature=exemplar-storage'
  const args = [...files, keeps, `--web.listen-address=${address}`, '--log.level=error']
  const child = spawn('nice', ['-n', '15', path, ...args], { stdio: 'ignore' })
  const ended = new Promise<void>((resolve) => {
    child.once('error', () => {
      resolve()
    })
    child.once('exit', () => {
      resolve()
    })
  })
  const stop = async () => {
    child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  const ask = async (what: string) => {
    const answer = await fetch(`http://${address}${what}`, { signal: AbortSignal.timeout(10_000) })
    const { status, error, data } = (await answer.json()) as Record<string, unknown>
    if (status !== 'success') throw new Error(`Prometheus on ${what}: ${String(error)}`)
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
      const data = await ask(`/api/v1/query?query=${encodeURIComponent(expression)}`)
      return data['result'] as readonly Sample[]
    },
    exemplars: async (series) => {
      const end = Date.now() / 1000
      const when = `start=${String(end - HOUR_SECONDS)}&end=${String(end)}`
      const found = await ask(`/api/v1/query_exemplars?query=${encodeURIComponent(series)}&${when}`)
      const all = found as unknown as readonly { readonly exemplars: readonly Exemplar[] }[]
      return all.flatMap(({ exemplars }) => exemplars)
    },
    firing: async () => {
      const { alerts } = await ask('/api/v1/alerts')
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

/** Scrapes one process. */
export function scrapeTarget({ address, path, labels }: Target): object {
  return {
    job_name: address,
    metrics_path: path,
    static_configs: [{ targets: [address], labels }],
  }
}
