// The reload of TLS files on a disk that hangs: reported once, retried, and never accumulating.
// test/component/ratelimit/grpc-tls.test.ts reloads the files of a server.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { createAuthority } from '../../test/kit/ratelimit/grpc-certificates.ts'
import { findTlsProblems, watchTlsFiles } from './tls-files.ts'
import type { FileWatch } from './watch-files.ts'

const authority = createAuthority('servers of the test')
const STEP_MS = 500

let folder: string
let watch: FileWatch | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'curtail-tls-'))
  jest.useFakeTimers()
})
afterEach(async () => {
  jest.useRealTimers()
  await watch?.stop()
  rmSync(folder, { recursive: true })
})

/** Advances the fake timers until `isMet`, with real pauses in which files are read. */
async function advanceUntil(isMet: () => boolean, msMax: number): Promise<void> {
  for (let ms = 0; ms < msMax && !isMet(); ms += STEP_MS) {
    await jest.advanceTimersByTimeAsync(STEP_MS)
    await sleep(5)
  }
}

test.each<[string, Partial<Record<'CERT' | 'KEY' | 'CA', string>>, readonly string[]]>([
  ['valid files', { CERT: 'crt', KEY: 'key', CA: 'ca' }, []],
  ['none', {}, []],
  ['an empty value', { CERT: '' }, []],
  [
    'missing files',
    { CERT: 'none', KEY: 'none' },
    ['CERT must name a readable file in PEM', 'KEY must name a readable file in PEM'],
  ],
  [
    'the key of another certificate',
    { CERT: 'crt', KEY: 'other' },
    ['KEY must be the key of CERT: error:05800074:x509 certificate routines::key values mismatch'],
  ],
  ['a key as CA', { CA: 'key' }, ['CA must contain valid certificates: error:']],
  [
    'several mistakes',
    { CERT: 'crt', KEY: 'other', CA: 'text' },
    ['CA must name a readable file in PEM', 'KEY must be the key of CERT'],
  ],
])('%s', (_, given, problems) => {
  const { cert, key } = authority.issue(['localhost'])
  const files = { crt: cert, key, ca: authority.cert, text: 'nothing' }
  const all = { ...files, other: authority.issue(['localhost']).key }
  for (const [name, content] of Object.entries(all)) writeFileSync(join(folder, name), content)
  const setting = (name: keyof typeof given): readonly [string, string | undefined] => {
    const file = given[name]
    return [name, file === undefined || file === '' ? file : join(folder, file)]
  }
  const found = findTlsProblems({
    certificate: setting('CERT'),
    key: setting('KEY'),
    authorities: setting('CA'),
  })
  expect(found).toEqual(problems.map((problem): unknown => expect.stringContaining(problem)))
})

test('files that hang are reported once, and loaded when they can be read', async () => {
  const [first, second] = [authority.issue(['localhost']), authority.issue(['localhost'])]
  const [certificate, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  writeFileSync(certificate, first.cert)
  writeFileSync(key, first.key)
  const loaded: string[] = []
  const errors: string[] = []
  watch = watchTlsFiles({
    files: { certificate, key, authorities: undefined },
    onChange: ({ cert }) => loaded.push(String(cert)),
    onError: (error) => errors.push((error as Error).message),
  })
  await advanceUntil(() => loaded.length === 1, 60_000)
  rmSync(certificate)
  execFileSync('mkfifo', [certificate]) // a read hangs until the test opens it
  await advanceUntil(() => errors.length > 0, 60_000)
  expect(errors).toEqual([`Cannot read ${certificate}, ${key} within 10 s`])
  await advanceUntil(() => false, 120_000)
  expect([loaded, errors.length]).toEqual([[first.cert], 1])
  const hanging = await open(certificate, 'w')
  writeFileSync(join(folder, 'next.crt'), second.cert)
  writeFileSync(key, second.key)
  renameSync(join(folder, 'next.crt'), certificate)
  await hanging.close()
  await advanceUntil(() => loaded.length > 1, 60_000)
  expect([loaded, errors.length]).toEqual([[first.cert, second.cert], 1])
})
