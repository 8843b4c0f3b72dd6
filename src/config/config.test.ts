// Configuration: every fault at once, secrets from files and never shown, absent and empty alike.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { z } from 'zod'
import {
  ConfigError,
  type Environment,
  parseConfig,
  renderSettings,
  type Setting,
  together,
} from './config.ts'
import { integerSetting, textSetting } from './settings.ts'

const folder = mkdtempSync(join(tmpdir(), 'curtail-config-'))
afterAll(() => {
  rmSync(folder, { recursive: true })
})

function fileWith(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
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
  NAME: textSetting('the name', 'nobody'),
  TOKEN: secret,
} as const
const TOKEN = '0123456789abcdef'

function faultsOf(env: Environment): readonly string[] {
  try {
    parseConfig(settings, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
  return []
}

test('values are parsed, and what is absent or empty falls back', () => {
  const expected = { PORT: 0, WORKERS: 2, NAME: 'nobody', TOKEN }
  expect(parseConfig(settings, { PORT: '0', NAME: '', WORKERS: '', TOKEN })).toEqual(expected)
  expect(parseConfig(settings, { PORT: '0', TOKEN, OTHER: 'ignored' })).toEqual(expected)
})

test('every fault is listed at once, a line each', () => {
  const faults = faultsOf({ PORT: '65536', WORKERS: 'many', TOKEN: undefined })
  expect(faults).toEqual([
    'PORT must be an integer from 0 to 65535: current value is "65536"',
    'WORKERS must be an integer from 1 to 9: current value is "many"',
    'TOKEN is required: at least 16 characters',
  ])
  expect(() => parseConfig(settings, { PORT: 'x', WORKERS: 'y', TOKEN })).toThrow(/\n/)
})

test('what is wrong with settings together is listed too, where each is well alone', () => {
  const { PORT, WORKERS } = settings
  const asks: unknown[] = []
  const tied = together({ PORT, WORKERS }, (config) => {
    asks.push(config)
    return config.PORT > config.WORKERS ? ['PORT is above WORKERS', 'again'] : []
  })
  const tell = (env: Environment) => {
    try {
      return parseConfig(settings, env, [tied])
    } catch (error) {
      return (error as ConfigError).faults
    }
  }
  const required = 'TOKEN is required: at least 16 characters'
  expect(tell({ PORT: '9' })).toEqual([required, 'PORT is above WORKERS', 'again'])
  expect(tell({ PORT: '1', TOKEN })).toMatchObject({ PORT: 1 })
  expect(asks).toHaveLength(2)
  expect(tell({ PORT: 'x' })).toEqual([expect.stringMatching(/^PORT must be/), required])
  expect(asks).toHaveLength(2)
})

test.each(['-1', '1.5', '1e3', ' 1', '1 ', '0x1', '١', '99999999999', 'NaN', '+1'])(
  'PORT=%j is a fault',
  (PORT) => {
    expect(faultsOf({ PORT, TOKEN })).toHaveLength(1)
  },
)

test('a secret may come from a file, without the line’s end', () => {
  for (const end of ['', '\n', '\r\n']) {
    const TOKEN_FILE = fileWith('token', `${TOKEN}${end}`)
    expect(parseConfig(settings, { TOKEN_FILE }).TOKEN).toBe(TOKEN)
  }
  const TOKEN_FILE = fileWith('two-lines', `${TOKEN}\n\n`)
  expect(parseConfig(settings, { TOKEN_FILE }).TOKEN).toBe(`${TOKEN}\n`)
})

test('only a secret may come from a file', () => {
  const NAME_FILE = fileWith('name', 'from a file')
  expect(parseConfig(settings, { TOKEN, NAME_FILE }).NAME).toBe('nobody')
})

test('a file that is not there, and both at once, are faults', () => {
  const TOKEN_FILE = join(folder, 'nowhere')
  expect(faultsOf({ TOKEN_FILE })).toEqual([
    `TOKEN_FILE must name a readable file: current value is ${TOKEN_FILE}`,
  ])
  expect(faultsOf({ TOKEN, TOKEN_FILE: fileWith('token', TOKEN) })).toEqual([
    'TOKEN and TOKEN_FILE are both set: choose one',
  ])
})

test('a bad secret is never shown, wherever it came from', () => {
  const bad = 'hunter2'
  for (const env of [{ TOKEN: bad }, { TOKEN_FILE: fileWith('bad', bad) }]) {
    const faults = faultsOf(env)
    expect(faults).toEqual(['TOKEN must be at least 16 characters: current value is hidden'])
    expect(faults.join()).not.toContain(bad)
  }
})

test('a value that would break a line is shown on one line', () => {
  expect(faultsOf({ PORT: 'a\nb', TOKEN })[0]).not.toContain('\n')
})

test('--help shows every setting with what is allowed and what holds without it', () => {
  const help = renderSettings(settings)
  for (const [name, { about, allowed, fallback }] of Object.entries(settings)) {
    expect(help).toContain(name)
    for (const text of [about, allowed, fallback]) expect(help).toContain(text)
  }
})
