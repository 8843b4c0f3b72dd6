// The commands of the runbooks, run as printed against a working release: each succeeds, and a link
// redirects after every page.
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createAuthority } from '../kit/ratelimit/grpc-certificates.ts'
import { waitFor } from '../kit/wait-for.ts'
import { scriptsOf } from '../kit/runbook-commands.ts'
import { kubectl } from './cluster.ts'
import { CODE_SECRET } from './code-pools.ts'
import { createPortForwards } from './port-forward.ts'
import { createRunbookRunner, type RunbookRunner, readPages } from './runbook-runner.ts'
import {
  edgeUrl,
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  RELEASE,
  createLink,
  waitForAllReady,
  upgradeRelease,
} from './release.ts'

const PAGE_MS_MAX = 6 * 60_000
const SECRET = 'runbook-tls'
const pages = await readPages()
const shippedRules = new URL('../../envoy/rate-limits.yaml', import.meta.url)

/** Commands that this file does not run, and why. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [/^helm \S+ \S+ rollback /, 'rollout.test.ts rolls back, under load'],
  [/ top pods$/, 'needs the metrics server, which the chart does not install'],
  [
    / -- (nodetool|df) /,
    'the image of the tests has neither; test/component/chart/runbooks.test.ts checks it',
  ],
  [/^npx /, 'needs a checkout; test/component/chart/runbooks.test.ts checks it'],
  [
    /cronjob\/|job\/refill-now/,
    'pool-modes.test.ts runs it with a CronJob, which this mode does not have',
  ],
]
/** Fails on a working release, which has no logs of a previous container. */
const MAY_FAIL = ' --previous '

const isOfCodes = (line: string) => line.includes('code-secret')
const changes = / (delete|rollout|upgrade) /

let runner: RunbookRunner
let edge: string
let code: string
const portForwards = createPortForwards()

beforeAll(async () => {
  await ensureRelease()
  edge = await edgeUrl()
  code = await createLink(edge, 'https://example.com/runbooks')
  runner = await createRunbookRunner()
  const { cert, key } = createAuthority('authority').issue(['s.example'], 30)
  const [certFile, keyFile] = [join(runner.folder, 'tls.crt'), join(runner.folder, 'tls.key')]
  await writeFile(certFile, cert)
  await writeFile(keyFile, key)
  const at = ['--cert', certFile, '--key', keyFile]
  await kubectl('create', 'secret', 'tls', SECRET, ...at, '--namespace', RELEASE)
  await runner.saveCodeSecret(CODE_SECRET.name)
  await writeFile(join(runner.folder, 'pools.yaml'), 'pools: {}\n')
  await copyFile(shippedRules, join(runner.folder, 'rate-limits.yaml'))
  await fillList('configmap', 'blocked-targets', { data: { 'blocked-targets.txt': 'a.example\n' } })
  await fillList('secret', 'api-keys', { stringData: { 'api-keys.ndjson': '# no keys\n' } })
}, INSTALL_MS_MAX)

/** Writes an operator list of the release: the runbooks save and restore it. */
async function fillList(kind: string, list: string, content: object): Promise<void> {
  const patch = ['--type=merge', '--patch', JSON.stringify(content), '--namespace', RELEASE]
  await kubectl('patch', kind, `${FULL_NAME}-${list}`, ...patch)
}

afterAll(async () => {
  await portForwards.stop()
  await kubectl('delete', 'secret', SECRET, '--namespace', RELEASE)
  await runner.close()
}, PAGE_MS_MAX)

/** Runs one command; returns its failures. */
async function runCommand(line: string): Promise<string[]> {
  if (line.endsWith(' &')) {
    await portForwards.start(line.replaceAll('$NS', RELEASE).replaceAll('$R', FULL_NAME))
    return []
  }
  const { code: exitCode, stderr } = await runner.run(line, {
    names: { SECRET: isOfCodes(line) ? CODE_SECRET.name : SECRET },
  })
  const hasFailed = exitCode !== 0 || /^error|error from server|unknown|usage/im.test(stderr)
  return hasFailed && !line.includes(MAY_FAIL) ? [`${line}: ${String(exitCode)} ${stderr}`] : []
}

const redirects = async () => {
  const response = await fetch(`${edge}/${code}`, {
    redirect: 'manual',
    signal: AbortSignal.timeout(5000),
  })
  return response.status === 302
}

test.each(pages.map((page) => [page.name, page] as const))(
  '%s',
  async (_, page) => {
    const lines = scriptsOf(page).filter((line) => !elsewhere.some(([what]) => what.test(line)))
    const failures: string[] = []
    for (const line of lines) {
      failures.push(...(await runCommand(line)))
      if (changes.test(line)) await waitForAllReady()
    }
    await portForwards.stop()
    expect(failures).toEqual([])
    await waitFor('the link to redirect', redirects)
  },
  PAGE_MS_MAX,
)

test(
  'after all pages an upgrade to the original values needs no --force-conflicts',
  async () => {
    await upgradeRelease()
    await waitFor('the link to redirect', redirects)
  },
  PAGE_MS_MAX,
)

test('the pages contain commands, including each one that another test runs', () => {
  const lines = pages.flatMap(scriptsOf)
  expect(lines.length).toBeGreaterThan(40)
  for (const [what] of elsewhere) expect(lines.filter((line) => what.test(line))).not.toEqual([])
})
