// Checks the documents against the code, in both directions: an entry missing in either one fails.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { algorithms } from '../src/limits/algorithms.ts'
import { parseRules } from '../src/limits/parse-rules.ts'
import { createMetrics } from '../src/telemetry/metrics.ts'
import type { Role } from '../src/process/role.ts'
import { checkSettings, expectedSettings } from '../src/stores/cassandra/cluster-settings.ts'

/** The cells of each row of a document's tables whose first cell is code, without back-quotes. */
function rowsOf(path: string): string[][] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.split('|').slice(1, -1))
    .map((cells) => cells.map((cell) => cell.trim().replaceAll('`', '')))
}

test('docs/metrics.md lists every metric, its type and its labels, and no other', async () => {
  const { registry } = createMetrics()
  const inCode = (await registry.getMetricsAsJSON()).map(
    ({ name, type }) => `${name} ${String(type)}`,
  )
  const inDocs = rowsOf('docs/metrics.md').map(([name, type]) => `${name ?? ''} ${type ?? ''}`)
  expect(inDocs.sort()).toEqual(inCode.sort())
})

test('docs/metrics.md lists the labels of every metric', () => {
  const metrics = Object.entries(createMetrics()).filter(([key]) => key !== 'registry')
  const inCode = metrics.map(([, metric]) => {
    const { name, labelNames } = metric as unknown as { name: string; labelNames: string[] }
    return `${name}: ${labelNames.length === 0 ? '–' : labelNames.join(', ')}`
  })
  const inDocs = rowsOf('docs/metrics.md').map(
    ([name, , labels]) => `${name ?? ''}: ${labels ?? ''}`,
  )
  expect(inDocs.sort()).toEqual(inCode.sort())
})

test('docs/cassandra.md lists every setting that migrate checks, and what is required', () => {
  const inCode = expectedSettings.map(({ setting, wanted }) => `${setting}: ${wanted}`)
  const inDocs = rowsOf('docs/cassandra.md').map(
    ([name, wanted]) => `${name ?? ''}: ${wanted ?? ''}`,
  )
  expect(inDocs.sort()).toEqual(inCode.sort())
})

test.each([
  'charts/curtail/files/cassandra/cassandra.yaml',
  'charts/curtail/templates/_k8ssandra.tpl',
  'test/dependencies/cassandra/cassandra.yaml',
])('%s sets what docs/cassandra.md requires', (path) => {
  const lines = readFileSync(path, 'utf8').matchAll(/^ *([a-z_]+): ([^\n]+)$/gm)
  const settings = new Map([...lines].map(([, name = '', value = '']) => [name, value]))
  expect(settings.get('commitlog_sync')).toBe('group')
  expect(checkSettings([settings])).toEqual([])
})

test('docs/configuration.md lists exactly the settings and the roles that read them', async () => {
  const readers = new Map<string, string[]>()
  for (const file of readdirSync('src/roles').sort()) {
    const { role } = (await import(`../src/roles/${file}`)) as { role: Role }
    const name = file === 'raise-pools.ts' ? 'pool raise' : file.replace('.ts', '')
    for (const setting of Object.keys(role.settings)) {
      readers.set(setting, [...(readers.get(setting) ?? []), name])
    }
  }
  const inCode = [...readers].map(([name, roles]) => `${name}: ${roles.sort().join(', ')}`)
  // A name with different meanings for two roles has a row in two tables.
  const documented = new Map<string, string[]>()
  for (const [name = '', roles = ''] of rowsOf('docs/configuration.md')) {
    documented.set(name, [...(documented.get(name) ?? []), ...roles.split(', ')])
  }
  const inDocs = [...documented].map(([name, roles]) => `${name}: ${roles.sort().join(', ')}`)
  expect(inDocs.sort()).toEqual(inCode.sort())
})

test('docs/configuration.md has the default that --help prints', async () => {
  const { role } = await import('../src/roles/standalone.ts')
  for (const [name, , fallback = ''] of rowsOf('docs/configuration.md')) {
    const setting = role.settings[name ?? '']
    if (setting !== undefined)
      expect([name, setting.fallback]).toEqual([name, expect.stringContaining(fallback)])
  }
})

test('docs/rate-limits.md describes every algorithm in the order of the list', () => {
  const described = readFileSync('docs/rate-limits.md', 'utf8').split('## The algorithms')[1]
  const names = [...(described ?? '').matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name)
  expect(names).toEqual(algorithms.map(({ name }) => name))
})

test('the rules in docs/rate-limits.md have no faults', () => {
  const blocks = readFileSync('docs/rate-limits.md', 'utf8').matchAll(/```yaml\n(.*?)```/gs)
  const files = [...blocks].map(([, text = ''], at) => ({ name: `block ${at}`, text }))
  const parsed = parseRules(files, { mergeDomains: false })
  expect(parsed).not.toHaveProperty('faults')
  // One for a limiter, and one for standalone.
  expect('rules' in parsed && [...parsed.rules.keys()]).toEqual(['shop', 'curtail'])
})

test.each([
  ['docs/architecture.md', 6],
  ['README.md', 1],
])('every file that %s names exists', (path, countMin) => {
  const named = [...readFileSync(path, 'utf8').matchAll(/`((?:src|charts|test)\/[\w./-]+)`/g)]
  expect(named.length).toBeGreaterThanOrEqual(countMin)
  expect(named.map(([, name = '']) => name).filter((name) => !existsSync(name))).toEqual([])
})
