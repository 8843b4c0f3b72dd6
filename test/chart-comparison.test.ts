// docs/chart-comparison.md against the charts: every value in the column of Curtail exists, every
// setting of pods has a row, and a capability that the chart lacks has its reason in the ADR.
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'

interface Schema {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
}

const schema = JSON.parse(readFileSync('charts/curtail/values.schema.json', 'utf8')) as Schema & {
  readonly definitions: Readonly<Record<string, Schema>>
}
/** The cells of each row below the heads of the tables. */
const rows = readFileSync('docs/chart-comparison.md', 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (Capability|-+) /.test(line))
  .map((line) => line.split('|').slice(1, -1))
  .map((cells) => cells.map((cell) => cell.trim()))
const named = rows.flatMap(([, ours = '']) =>
  [...ours.matchAll(/`([^`]+)`/g)].map(([, value = '']) => value),
)

/** The schema of the value at `path`; undefined if the chart has no such value. */
function schemaOf(path: string): Schema | undefined {
  return path.split('.').reduce<Schema | undefined>((parent, name) => {
    return resolve(parent?.properties?.[name])
  }, schema)
}

function resolve(found: Schema | undefined): Schema | undefined {
  const shape = found?.$ref?.split('/').at(-1)
  return shape === undefined ? found : schema.definitions[shape]
}

test('every value in the column of Curtail exists', () => {
  expect(named.length).toBeGreaterThan(70)
  expect(named.filter((value) => schemaOf(value) === undefined)).toEqual([])
})

test('every setting of pods has a row', () => {
  const settings = Object.keys(schemaOf('podDefaults')?.properties ?? {})
  expect(settings.length).toBeGreaterThan(25)
  const covers = (setting: string) => (value: string) => `${value}.`.startsWith(`${setting}.`)
  expect(settings.filter((one) => !named.some(covers(`podDefaults.${one}`)))).toEqual([])
})

test('every row compares all charts; Curtail has the capability, or the ADR has the reason', () => {
  expect(rows.filter((cells) => cells.length !== 6 || cells.includes(''))).toEqual([])
  const lacking = rows.filter(([, ours = '']) => /^(–|fixed|no )/.test(ours))
  expect(lacking.filter(([, ours = '']) => !ours.includes('](adr/0009'))).toEqual([])
})
