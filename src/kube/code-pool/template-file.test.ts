// The file of the pod template: missing, invalid and changed files in a temporary folder.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { waitFor } from '../../../test/kit/wait-for.ts'
import { createTemplateFile, refillTemplateFile, type TemplateFile } from './template-file.ts'

const VALID = 'spec: { containers: [{ name: refill }] }'
const parsed = { spec: { containers: [{ name: 'refill' }] } }

let folder: string
let path: string
let changes: number
let errors: unknown[]
let file: TemplateFile

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-template-'))
  path = join(folder, 'template.yaml')
  changes = 0
  errors = []
  file = createTemplateFile({
    path,
    onChange: () => changes++,
    onError: (error) => errors.push(error),
  })
})
afterEach(() => rm(folder, { recursive: true }))

test('a file counts as missing until it is read', async () => {
  await writeFile(path, VALID)
  const missing = { reason: 'TemplateMissing', message: expect.stringContaining(path) }
  expect(file.get()).toEqual(missing)
  await file.read()
  expect(file.get()).toEqual(parsed)
  await rm(path)
  await file.read()
  expect([file.get(), changes]).toEqual([missing, 2])
})

test('reports each change of the content once', async () => {
  await writeFile(path, VALID)
  await file.read()
  await file.read()
  expect(changes).toBe(1)
  await writeFile(path, `${VALID} # the same template`)
  await file.read()
  expect(changes).toBe(1)
  await writeFile(path, '[')
  await file.read()
  expect([file.get(), changes]).toMatchObject([{ reason: 'TemplateInvalid' }, 2])
})

test('reports a missing file at the first read', async () => {
  await file.read()
  expect(changes).toBe(1)
})

test('reads the file when polling starts', async () => {
  await writeFile(path, VALID)
  const polling = file.start()
  await waitFor('the first read', () => changes === 1)
  expect([file.get(), errors]).toEqual([parsed, []])
  await polling.stop()
})

test('a defect of the callback is reported, and does not stop the polling', async () => {
  const defect = new Error('defect')
  const failing = createTemplateFile({
    path,
    onChange() {
      throw defect
    },
    onError: (error) => errors.push(error),
  })
  const polling = failing.start()
  await waitFor('the error', () => errors.length === 1)
  expect(errors).toEqual([defect])
  await polling.stop()
})

test('the check of the setting reports a missing or an invalid file', async () => {
  const find = () => refillTemplateFile.findProblems({ REFILL_POD_TEMPLATE: path })
  expect(await find()).toEqual([expect.stringMatching(/^REFILL_POD_TEMPLATE: .*cannot be read/)])
  await writeFile(path, 'spec: {}')
  expect(await find()).toEqual([expect.stringContaining('must have spec.containers')])
  await writeFile(path, VALID)
  expect(await find()).toEqual([])
})
