// The files that are generated from the charts: the schemas, the READMEs and the templates contain
// the same values, and the types of custom resources follow the CRDs.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { readValues, type Value } from '../../../charts/read-values.ts'
import { renderTypes } from '../../../charts/render-types.ts'
import { renderedFiles } from '../../../charts/render.ts'
import { chartFolder, limiterFolder } from '../../kit/chart/chart-render.ts'

test('the types of custom resources are generated from the CRDs', async () => {
  for (const [path, source] of await renderTypes())
    expect(await readFile(path, 'utf8')).toBe(source)
})

describe('the values', () => {
  test('are those in the files that `npm run render` generates, such as the schema', async () => {
    for (const [path, expected] of await renderedFiles()) {
      const found = await readFile(path, 'utf8').catch(() => 'the file does not exist')
      expect([path, found]).toEqual([path, expected])
    }
  })

  test('are exactly those that the templates read', async () => {
    const values = await readValuesOf(chartFolder)
    const templates = await readTemplates(chartFolder, limiterFolder)
    const leaves = values.flatMap(leavesOf)
    const paths = values.flatMap(pathsOf)
    const read = [...templates.matchAll(/\.Values\.([A-Za-z0-9.]+)/g)].map(([, path = '']) => path)
    const exists = (path: string) => {
      const parent = path.split('.').slice(0, -1).join('.')
      return paths.includes(path) || leaves.some((leaf) => leaf.path === parent && hasShape(leaf))
    }
    expect(read.filter((path) => !exists(path))).toEqual([])
    expect(unreadIn(templates, values)).toEqual([])
  })

  test('of the rate limiter alone are values of the chart curtail, and all are read', async () => {
    const values = await readValuesOf(limiterFolder)
    const paths = (await readValuesOf(chartFolder)).flatMap(pathsOf)
    expect(values.flatMap(pathsOf).filter((path) => !paths.includes(path))).toEqual([])
    expect(unreadIn(await readTemplates(limiterFolder), values)).toEqual([])
  })
})

async function readValuesOf(folder: string): Promise<readonly Value[]> {
  return readValues(await readFile(join(folder, 'values.yaml'), 'utf8'))
}

/** The templates of the charts in these folders, concatenated. */
async function readTemplates(...folders: readonly string[]): Promise<string> {
  const paths: string[] = []
  for (const folder of folders) {
    const names = await readdir(join(folder, 'templates'), { recursive: true })
    const files = names.filter((name) => /\.(yaml|tpl|txt)$/.test(name))
    paths.push(...files.map((name) => join(folder, 'templates', name)))
  }
  return (await Promise.all(paths.map((path) => readFile(path, 'utf8')))).join('\n')
}

/** The values whose name does not occur as a word in the templates. */
function unreadIn(templates: string, values: readonly Value[]): readonly string[] {
  const unread = values.flatMap(leavesOf).filter(({ path }) => {
    const last = path.split('.').at(-1) ?? ''
    return !new RegExp(`\\b${last}\\b`).test(templates)
  })
  return unread.map(({ path }) => path)
}

function pathsOf({ path, children }: Value): string[] {
  return [path, ...(children ?? []).flatMap(pathsOf)]
}

function leavesOf(value: Value): Value[] {
  return value.children === undefined ? [value] : value.children.flatMap(leavesOf)
}

function hasShape({ schema }: Value): boolean {
  return '$ref' in schema
}
