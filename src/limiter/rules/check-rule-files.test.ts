// The check of rule files after a failed start: which problems it reports, and when it reads files.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { parseConfig } from '../../config/config.ts'
import { limitSettings, ruleFileSettings } from '../settings/settings.ts'
import { ruleFiles } from './load-rules.ts'

const SHOP =
  'domain: shop\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 3}}]\n'

let folder: string
let config: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-check-rules-'))
  config = join(folder, 'config')
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

function problemsOf(env: Readonly<Record<string, string>> = {}) {
  const location = { RUNTIME_ROOT: folder, RUNTIME_WATCH_ROOT: 'false' }
  const settings = { ...ruleFileSettings, ...limitSettings }
  return ruleFiles.findProblems(parseConfig(settings, { ...location, ...env }))
}

async function write(...contents: readonly string[]) {
  await mkdir(config)
  for (const [at, content] of contents.entries())
    await writeFile(join(config, `${at}.yaml`), content)
}

test('valid files have no problems', async () => {
  await write(SHOP)
  expect(await problemsOf()).toEqual([])
  expect(await problemsOf({ REQUIRED_DOMAIN: 'shop' })).toEqual([])
})

test('a missing folder is a problem, unless the process can start without its files', async () => {
  const title = `RUNTIME_ROOT: Cannot load the rules in ${config}:`
  expect(await problemsOf()).toEqual([
    title,
    expect.stringContaining(`${config}:1: the folder cannot be read: ENOENT`),
  ])
  expect(await problemsOf({ CONFIG_TYPE: 'GRPC_XDS_SOTW' })).toEqual([])
  expect(await problemsOf({ FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' })).toEqual([])
  expect(await problemsOf({ RULES_COPY: join(folder, 'copy') })).toEqual([])
})

test('each fault is a problem', async () => {
  await write('domain: [', 'domain: shop\ndescriptors: [{key: ""}]\n')
  expect((await problemsOf()).slice(1)).toEqual([
    expect.stringContaining('0.yaml:1: '),
    '1.yaml:2: descriptor has empty key',
  ])
})

test('a required domain without rules is a problem', async () => {
  await write(SHOP)
  expect((await problemsOf({ REQUIRED_DOMAIN: 'other' })).slice(1)).toEqual([
    `${config}:1: no file has rules for the required domain 'other': ` +
      "the domains with rules are 'shop'",
  ])
})

test('the options of the parser apply', async () => {
  await write(SHOP, SHOP.replace('key: k', 'key: l'))
  expect((await problemsOf()).slice(1)).toEqual([expect.stringMatching(/^1\.yaml:1: /)])
  expect(await problemsOf({ MERGE_DOMAIN_CONFIG: 'true' })).toEqual([])
})
