// A batch: order, parallelism and deadline.
import { expect, test } from '@jest/globals'
import { createImporter, sampleRow as row } from '../../test/kit/transfer/importer.ts'
import { StoreError } from '../resilience/store-error.ts'
import { createBatchImporter } from './import-batch.ts'

test('a batch has one result per row, in order; a bad row does not fail the others', async () => {
  const { deps } = createImporter()
  const rows: unknown[] = Array.from({ length: 100 }, (_, i) => row({ short_code: `c${i}` }))
  rows[3] = undefined
  rows[5] = { short_code: 'bad', long_url: 5 }
  const results = await createBatchImporter(deps)(rows)
  expect(results.map(({ result }) => result)).toEqual(
    rows.map((_, i) => (i === 3 || i === 5 ? 'invalid' : 'created')),
  )
  expect(results.map(({ short_code }) => short_code)).toEqual(
    rows.map((_, i) => (i === 3 ? null : i === 5 ? 'bad' : `c${i}`)),
  )
})

test('a row may have target_blocked, as the admin API prints it', async () => {
  const importBatch = createBatchImporter(createImporter().deps)
  const rowsOf = (target_blocked: unknown) => importBatch([{ ...row(), target_blocked }])
  expect(await rowsOf('yes')).toMatchObject([{ result: 'invalid' }])
  expect(await rowsOf(true)).toMatchObject([{ result: 'created' }])
  expect(await rowsOf(undefined)).toMatchObject([{ result: 'exists' }])
})

test('of several rows with one code in a batch, the first one wins', async () => {
  const { deps } = createImporter()
  const find = async (code: string) => {
    await new Promise(setImmediate)
    return deps.links.find(code)
  }
  const importBatch = createBatchImporter({ ...deps, links: { ...deps.links, find } })
  const urls = ['https://a.test/', 'https://b.test/', 'https://a.test/']
  const results = await importBatch(urls.map((long_url) => row({ long_url })))
  expect(results.map(({ result }) => result)).toEqual(['created', 'conflict', 'exists'])
})

test('after a failed row, later rows with its code fail: a retry keeps the order', async () => {
  const { deps } = createImporter()
  const insertIfAbsent = () => Promise.reject(new StoreError('down', { outcome: 'unknown' }))
  const links = { ...deps.links, insertIfAbsent }
  const urls = ['https://a.test/', 'https://b.test/']
  const rows = urls.map((long_url) => row({ long_url }))
  const failed = await createBatchImporter({ ...deps, links })(rows)
  expect(failed.map(({ result }) => result)).toEqual(['failed', 'failed'])
  expect(failed[1]?.detail).toMatch(/earlier row/)
})

test('a batch imports at most 16 rows in parallel, and none after its deadline', async () => {
  const { deps } = createImporter()
  let parallel = 0
  let most = 0
  let nowMs = 0
  const find = async () => {
    most = Math.max(most, ++parallel)
    await new Promise(setImmediate)
    nowMs += 1000
    parallel--
    return undefined
  }
  const links = { ...deps.links, find }
  const importBatch = createBatchImporter({ ...deps, links, monotonicMs: () => nowMs })
  const rows = Array.from({ length: 100 }, (_, i) => row({ short_code: `c${i}` }))
  const results = (await importBatch(rows)).map(({ result }) => result)
  expect(most).toBe(16)
  expect(results.slice(0, 16)).toEqual(Array(16).fill('created'))
  expect(results.slice(-50)).toEqual(Array(50).fill('failed'))
})
