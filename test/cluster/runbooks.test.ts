// The commands of the runbooks, run as printed against a release that serves: each gets through,
// and a link is followed after every page.
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createAuthority } from '../component/grpc-certificates.ts'
import { waitFor } from '../component/wait-for.ts'
import { scriptsOf } from '../parts/runbook-commands.ts'
import { kubectl } from './cluster.ts'
import { CODE_SECRET } from './code-pools.ts'
import { createForwards } from './forward.ts'
import { createReader, type Reader, readPages } from './reader.ts'
import {
  edgeUrl,
  ensureRelease,
  FULL_NAME,
  INSTALL_MS_MAX,
  RELEASE,
  shorten,
  untilAllWhole,
  upgradeRelease,
} from './release.ts'

const PAGE_MS_MAX = 6 * 60_000
const SECRET = 'runbook-tls'
const pages = await readPages()
const shippedRules = new URL('../../envoy/rate-limits.yaml', import.meta.url)

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

const isOfCodes = (line: string) => line.includes('code-secret')
const changes = / (delete|rollout|upgrade) /

let reader: Reader
let edge: string
let code: string
const forwards = createForwards()

beforeAll(async () => {
  await ensureRelease()
  edge = await edgeUrl()
  code = await shorten(edge, 'https://example.com/runbooks')
  reader = await createReader()
  const { cert, key } = createAuthority('authority').issue(['s.example'], 30)
  const [certFile, keyFile] = [join(reader.folder, 'tls.crt'), join(reader.folder, 'tls.key')]
  await writeFile(certFile, cert)
  await writeFile(keyFile, key)
  const at = ['--cert', certFile, '--key', keyFile]
  await kubectl('create', 'secret', 'tls', SECRET, ...at, '--namespace', RELEASE)
  await reader.keepCodeSecret(CODE_SECRET.name)
  await writeFile(join(reader.folder, 'pools.yaml'), 'pools: {}\n')
  await copyFile(shippedRules, join(reader.folder, 'rate-limits.yaml'))
}, INSTALL_MS_MAX)

afterAll(async () => {
  await forwards.end()
  await kubectl('delete', 'secret', SECRET, '--namespace', RELEASE)
  await reader.end()
}, PAGE_MS_MAX)

/** Runs one command; returns what was wrong with it. */
async function follow(line: string): Promise<string[]> {
  if (line.endsWith(' &')) {
    await forwards.begin(line.replaceAll('$NS', RELEASE).replaceAll('$R', FULL_NAME))
    return []
  }
  const { code: exitCode, stderr } = await reader.run(line, {
    names: { SECRET: isOfCodes(line) ? CODE_SECRET.name : SECRET },
  })
  const isWrong = exitCode !== 0 || /^error|error from server|unknown|usage/im.test(stderr)
  return isWrong && !line.includes(MAY_FAIL) ? [`${line}: ${String(exitCode)} ${stderr}`] : []
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

test(
  'after all pages an upgrade to the values of before needs no force',
  async () => {
    await upgradeRelease()
    await waitFor('the link to be followed', isFollowed)
  },
  PAGE_MS_MAX,
)

test('the pages have commands, and each that is run elsewhere is there', () => {
  const lines = pages.flatMap(scriptsOf)
  expect(lines.length).toBeGreaterThan(40)
  for (const [what] of elsewhere) expect(lines.filter((line) => what.test(line))).not.toEqual([])
})
