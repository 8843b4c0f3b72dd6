// The commands of the runbooks, run as printed against a release that serves: each gets through,
// and a link is followed after every page.
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { waitFor } from '../component/wait-for.ts'
import { findHelm } from '../parts/helm.ts'
import { type Page, scriptsOf } from '../parts/runbook-commands.ts'
import { getObject, kubectl, mustRun, tryRun } from './cluster.ts'
import { createForwards } from './forward.ts'
import {
  edgeUrl,
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  podsOf,
  RELEASE,
  shorten,
  untilWhole,
} from './release.ts'

const PAGE_MS_MAX = 6 * 60_000
const COMMAND_SECONDS_MAX = 120
const SECRET = 'runbook-tls'
const runbooks = new URL('../../docs/runbooks/', import.meta.url)
const pages = await readPages()

/** What is not run here, and why. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [/^helm \S+ \S+ rollback /, 'rollout.test.ts rolls back, under load'],
  [/ top pods$/, 'needs the metrics server, which is not part of the product'],
  [/ -- nodetool /, 'the image of the tests has none; test/component/runbooks.test.ts checks it'],
  [/^npm /, 'wants a checkout; test/component/runbooks.test.ts checks it'],
  [/cronjob\/|job\/refill-now/, 'pool-modes.test.ts has the CronJob, which this mode has not'],
]
/** There is nothing for it to find where nothing is wrong. */
const MAY_FAIL = ' --previous '

const changes = / (delete|rollout|scale|edit) /

let folder: string
let edge: string
let code: string
const forwards = createForwards()

async function readPages(): Promise<readonly Page[]> {
  const names = (await readdir(runbooks)).filter((name) => name !== 'README.md')
  return Promise.all(
    names.sort().map(async (name) => {
      return { name, text: await readFile(new URL(name, runbooks), 'utf8') }
    }),
  )
}

beforeAll(async () => {
  await ensureRelease()
  edge = await edgeUrl()
  code = await shorten(edge, 'https://example.com/runbooks')
  folder = await mkdtemp(join(tmpdir(), 'curtail-runbooks-'))
  const [key, certificate] = [join(folder, 'tls.key'), join(folder, 'tls.crt')]
  const files = ['-keyout', key, '-out', certificate, '-days', '30', '-subj', '/CN=s.example']
  await mustRun('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...files])
  const at = ['--cert', certificate, '--key', key]
  await kubectl('create', 'secret', 'tls', SECRET, ...at, '--namespace', RELEASE)
}, INSTALL_MS_MAX)

afterAll(async () => {
  await forwards.end()
  await kubectl('delete', 'secret', SECRET, '--namespace', RELEASE)
  await rm(folder, { recursive: true })
}, PAGE_MS_MAX)

/** Runs a line as a reader's shell does; an editor changes nothing. */
async function inFolder(line: string): Promise<{ code: number; stderr: string }> {
  const path = `${dirname(await findHelm(4))}:${process.env['PATH'] ?? ''}`
  const lines = [`cd ${folder}`, `export PATH=${path} NS=${RELEASE} R=${FULL_NAME}`, line]
  const limited = ['-k', '5', String(COMMAND_SECONDS_MAX), 'sh', '-c', lines.join('\n')]
  return tryRun('env', ['KUBE_EDITOR=true', 'timeout', ...limited])
}

/** The line with names that only the reader knows. */
async function fillIn(line: string): Promise<string> {
  const [pod = ''] = line.includes('POD') ? await podsOf('create') : []
  const named: readonly (readonly [RegExp, string])[] = [
    [/\bPOD\b/g, pod],
    [/\bSECRET\b/g, SECRET],
    [/\bRELEASE\b/g, RELEASE],
  ]
  return named.reduce((filled, [name, value]) => filled.replaceAll(name, value), line)
}

async function replicasOf(deployment: string): Promise<number> {
  const named = ['deployment', deployment, '--namespace', RELEASE]
  return (await getObject<{ spec: { replicas: number } }>(...named)).spec.replicas
}

/** Runs one command; gives what was wrong with it. What it scales is put back. */
async function follow(line: string): Promise<string[]> {
  const here = await fillIn(line)
  if (here.endsWith(' &')) {
    await forwards.begin(here.replaceAll('$NS', RELEASE).replaceAll('$R', FULL_NAME))
    return []
  }
  const kind = / scale deploy\/\$R-(\S+) /.exec(here)?.[1]
  const scaled = kind === undefined ? undefined : `${FULL_NAME}-${kind}`
  const replicas = scaled === undefined ? 0 : await replicasOf(scaled)
  const { code: exitCode, stderr } = await inFolder(here)
  if (scaled !== undefined) {
    const back = ['scale', `deployment/${scaled}`, `--replicas=${String(replicas)}`]
    await kubectl(...back, '--namespace', RELEASE)
  }
  const isWrong = exitCode !== 0 || /^error|error from server|unknown|usage/im.test(stderr)
  return isWrong && !here.includes(MAY_FAIL) ? [`${here}: ${String(exitCode)} ${stderr}`] : []
}

async function untilAllWhole(): Promise<void> {
  for (const kind of ['cache', 'counters', 'cassandra']) await untilWhole(`statefulset/${kind}`)
  for (const kind of ['create', 'redirect', 'ratelimit', 'edge', 'controller']) {
    await untilWhole(`deployment/${kind}`)
  }
}

const isFollowed = async () => {
  const answer = await fetch(`${edge}/${code}`, {
    redirect: 'manual',
    signal: AbortSignal.timeout(5000),
  })
  return answer.status === 302
}

test.each(pages.map((page) => [page.name, page] as const))(
  '%s',
  async (_, page) => {
    const lines = scriptsOf(page).filter((line) => !elsewhere.some(([what]) => what.test(line)))
    const faults: string[] = []
    for (const line of lines) {
      faults.push(...(await follow(line)))
      if (changes.test(line)) await untilAllWhole()
    }
    await forwards.end()
    expect(faults).toEqual([])
    await waitFor('the link to be followed', isFollowed)
  },
  PAGE_MS_MAX,
)

test('the pages have commands, and each that is run elsewhere is there', () => {
  const lines = pages.flatMap(scriptsOf)
  expect(lines.length).toBeGreaterThan(40)
  for (const [what] of elsewhere) expect(lines.filter((line) => what.test(line))).not.toEqual([])
})
