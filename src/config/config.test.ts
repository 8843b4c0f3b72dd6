// Configuration: all problems together; secrets from files, never displayed; empty means absent.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from '@jest/globals'
import { configProblems } from '../../test/kit/config-problems.ts'
import * as z from 'zod'
import {
  ConfigError,
  type Environment,
  fileSettings,
  parseConfig,
  renderSettings,
  type Setting,
  dependentSettings,
  startWithConfig,
} from './config.ts'
import { integerSetting, stringSetting } from './settings.ts'

const folder = mkdtempSync(join(tmpdir(), 'curtail-config-'))
afterAll(() => {
  rmSync(folder, { recursive: true })
})

function fileWith(name: string, content: string): string {
  writeFileSync(join(folder, name), content)
  return join(folder, name)
}

const secret: Setting<string> = {
  schema: z.string().min(16),
  allowed: 'at least 16 characters',
  fallback: 'none',
  about: 'a secret',
  secret: true,
}
const settings = {
  PORT: integerSetting('the port', { min: 0, max: 65_535, fallback: 8080 }),
  WORKERS: integerSetting('workers', { min: 1, max: 9, fallback: 2 }),
  NAME: stringSetting('the name', 'unnamed'),
  TOKEN: secret,
} as const
const TOKEN = '0123456789abcdef'

const problemsOf = (env: Environment) => configProblems(() => parseConfig(settings, env))

test('values are parsed; absent and empty ones have the default', () => {
  const expected = { PORT: 0, WORKERS: 2, NAME: 'unnamed', TOKEN }
  expect(parseConfig(settings, { PORT: '0', NAME: '', WORKERS: '', TOKEN })).toEqual(expected)
  expect(parseConfig(settings, { PORT: '0', TOKEN, OTHER: 'ignored' })).toEqual(expected)
})

test('all problems are listed together, one line each', () => {
  const problems = problemsOf({ PORT: '65536', WORKERS: 'many', TOKEN: undefined })
  expect(problems).toEqual([
    'PORT must be an integer from 0 to 65535: current value is "65536"',
    'WORKERS must be an integer from 1 to 9: current value is "many"',
    'TOKEN is required: at least 16 characters',
  ])
  expect(() => parseConfig(settings, { PORT: 'x', WORKERS: 'y', TOKEN })).toThrow(/\n/)
})

test('problems of dependent settings are listed only if each is valid alone', () => {
  const { PORT, WORKERS } = settings
  const checks: unknown[] = []
  const dependent = dependentSettings({ PORT, WORKERS }, (config) => {
    checks.push(config)
    return config.PORT > config.WORKERS ? ['PORT is above WORKERS', 'second'] : []
  })
  const parse = (env: Environment) => {
    try {
      return parseConfig(settings, env, [dependent])
    } catch (error) {
      return (error as ConfigError).problems
    }
  }
  const required = 'TOKEN is required: at least 16 characters'
  expect(parse({ PORT: '9' })).toEqual([required, 'PORT is above WORKERS', 'second'])
  expect(parse({ PORT: '1', TOKEN })).toMatchObject({ PORT: 1 })
  expect(checks).toHaveLength(2)
  expect(parse({ PORT: 'x' })).toEqual([expect.stringMatching(/^PORT must be/), required])
  expect(checks).toHaveLength(2)
})

describe('the files that settings name', () => {
  const { PORT, NAME } = settings
  const load = ({ NAME: name }: { readonly NAME: string }) => {
    if (name.startsWith('bad')) throw new ConfigError([`NAME: ${name} is bad`, `NAME: ${name}`])
    if (name === 'defect') throw new TypeError('a defect')
    return Promise.resolve(name)
  }
  const files = [
    fileSettings({ NAME }, load),
    fileSettings({ PORT, NAME }, () => Promise.reject(new ConfigError(['a third file']))),
  ]
  const started: unknown[] = []
  const start = (env: Environment, error?: Error) =>
    startWithConfig({ settings, files }, env, (config) => {
      started.push(config)
      return error === undefined ? Promise.resolve(config.NAME) : Promise.reject(error)
    })
  const problemsOfStart = (env: Environment, error?: Error) =>
    start(env, error).catch((thrown: unknown) => (thrown as ConfigError).problems)

  test('are not checked if the start succeeds', async () => {
    expect(await start({ NAME: 'bad', TOKEN })).toBe('bad')
    expect(started).toMatchObject([{ NAME: 'bad', PORT: 8080 }])
  })

  test.each([
    {
      after: 'an invalid value',
      env: { NAME: 'bad', TOKEN, WORKERS: 'x' },
      problems: [/^WORKERS must/, 'NAME: bad is bad', 'NAME: bad', 'a third file'],
    },
    {
      after: 'an invalid value of one of the settings that a check reads',
      env: { NAME: 'bad', TOKEN, PORT: 'x' },
      problems: [/^PORT must/, 'NAME: bad is bad', 'NAME: bad'],
    },
    {
      after: 'a problem that the start itself has found',
      env: { NAME: 'bad', TOKEN },
      error: new ConfigError(['NAME: bad is bad', 'NAME: bad']),
      problems: ['NAME: bad is bad', 'NAME: bad', 'a third file'],
    },
    {
      after: 'an invalid value, even if a check fails',
      env: { NAME: 'defect', TOKEN, WORKERS: 'x' },
      problems: [/^WORKERS must/, /^Cannot check the files of NAME: a defect$/, 'a third file'],
    },
  ])('are checked after $after', async ({ env, error, problems }) => {
    const expected = problems.map((problem): unknown => expect.stringMatching(problem))
    expect(await problemsOfStart(env, error)).toEqual(expected)
  })

  test('are not checked after another error', async () => {
    const other = new Error('Redis is unavailable')
    await expect(start({ NAME: 'bad', TOKEN }, other)).rejects.toBe(other)
  })
})

test.each(['-1', '1.5', '1e3', ' 1', '1 ', '0x1', '١', '99999999999', 'NaN', '+1'])(
  'PORT=%j is a problem',
  (PORT) => {
    expect(problemsOf({ PORT, TOKEN })).toHaveLength(1)
  },
)

test('a secret may come from a file, without its final newline', () => {
  for (const end of ['', '\n', '\r\n']) {
    const TOKEN_FILE = fileWith('token', `${TOKEN}${end}`)
    expect(parseConfig(settings, { TOKEN_FILE }).TOKEN).toBe(TOKEN)
  }
  const TOKEN_FILE = fileWith('two-lines', `${TOKEN}\n\n`)
  expect(parseConfig(settings, { TOKEN_FILE }).TOKEN).toBe(`${TOKEN}\n`)
})

test('only a secret is read from a file', () => {
  const NAME_FILE = fileWith('name', 'from a file')
  expect(parseConfig(settings, { TOKEN, NAME_FILE }).NAME).toBe('unnamed')
})

test('a missing file is a problem, and so is a value in addition to a file', () => {
  const TOKEN_FILE = join(folder, 'nowhere')
  expect(problemsOf({ TOKEN_FILE })).toEqual([
    `TOKEN_FILE must name a readable file: current value is ${TOKEN_FILE}`,
  ])
  expect(problemsOf({ TOKEN, TOKEN_FILE: fileWith('token', TOKEN) })).toEqual([
    'TOKEN and TOKEN_FILE are both set: remove one',
  ])
})

test('an invalid secret is never displayed, from any source', () => {
  const bad = 'hunter2'
  for (const env of [{ TOKEN: bad }, { TOKEN_FILE: fileWith('bad', bad) }]) {
    const problems = problemsOf(env)
    expect(problems).toEqual(['TOKEN must be at least 16 characters: current value is hidden'])
    expect(problems.join()).not.toContain(bad)
  }
})

test('a value with a newline is displayed on one line', () => {
  expect(problemsOf({ PORT: 'a\nb', TOKEN })[0]).not.toContain('\n')
})

test('--help lists every setting with its allowed values and its default', () => {
  const help = renderSettings(settings)
  for (const [name, { about, allowed, fallback }] of Object.entries(settings)) {
    expect(help).toContain(name)
    for (const text of [about, allowed, fallback]) expect(help).toContain(text)
  }
})
