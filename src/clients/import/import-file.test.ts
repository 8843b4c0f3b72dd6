// The client of an import: batches, retries of what the service has not confirmed, and progress
// that is recorded, continued, or rejected if it belongs to another import.
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { FormatError, type FileRow, type Rows } from '../../transfer/format.ts'
import type { ImportResult } from '../../transfer/import-result.ts'
import type { LinkRow } from '../../transfer/link-row.ts'
import { importFile, type ImportOptions } from './import-file.ts'
import { readProgress } from './progress-file.ts'
import { openReport } from './report.ts'
import { createRowSender } from './send-rows.ts'

let folder: string
let path: string
/** How long the last import waited, by a simulated clock. */
let waitedMs: number
const servers: Server[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-import-'))
  path = join(folder, 'file.progress')
})

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.close()
    server.closeAllConnections()
  }
  await rm(folder, { recursive: true })
})

type Respond = (rows: LinkRow[], request: number) => ImportResult[] | number | 'reset'

/** An admin API with scripted responses; returns its target and the batches that it received. */
async function startApi(respond: Respond) {
  const batches: string[][] = []
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const lines = Buffer.concat(chunks).toString().trimEnd().split('\n')
      const rows = lines.map((line) => JSON.parse(line) as LinkRow)
      const response = respond(rows, batches.length)
      batches.push(rows.map(({ short_code }) => short_code))
      if (response === 'reset') req.socket.destroy()
      else if (typeof response === 'number') {
        res.writeHead(response).end(JSON.stringify({ detail: 'scripted' }))
      } else res.end(JSON.stringify({ results: response }))
    })
  })
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, batches }
}

const resultOf = (result: ImportResult['result']) => (row: LinkRow) => {
  const isStored = result === 'created' || result === 'exists'
  const { short_code } = row
  return { short_code, result, code: isStored ? short_code : null, detail: null }
}
const create: Respond = (rows) => rows.map(resultOf('created'))

function link(code: string): LinkRow {
  const times = { created_at: null, expires_at: null, creator_id: null }
  return { short_code: code, long_url: `https://example.com/${code}`, state: 'active', ...times }
}

async function* rowsOf(count: number, error?: Error): Rows {
  for (let i = 1; i <= count; i++) {
    const code = `c${i}`
    const place = { row: i, line: i + 1 }
    const parsed: FileRow =
      i % 10 === 0 ? { ...place, fault: 'bad', code } : { ...place, link: link(code) }
    yield await Promise.resolve(parsed)
  }
  if (error !== undefined) throw error
}

/** Runs an import of 25 rows, of which two are bad; `wait` advances a simulated clock. */
async function run(
  url: string,
  change: Partial<Omit<ImportOptions, 'progress'>> & { format?: string } = {},
) {
  const { format = 'csv', ...options } = change
  waitedMs = 0
  const pause = (ms: number) => {
    waitedMs += ms
    return Promise.resolve()
  }
  const { signal } = new AbortController()
  const retries: string[] = []
  const onRetry = (cause: string) => void retries.push(cause)
  const target = { url, token: undefined }
  const earlier = await readProgress(path)
  const report = await openReport(`${path}.report`, earlier?.reportBytes ?? 0)
  try {
    const counts = await importFile({
      rows: rowsOf(25),
      send: createRowSender({ target, signal, onRetry, pause, monotonicMs: () => waitedMs }),
      report,
      rowsPerSecond: 40,
      progress: { path, format, url: 'http://admin', earlier },
      signal,
      onBatch: () => undefined,
      pause,
      nowMs: () => waitedMs,
      ...options,
    })
    return { counts, retries }
  } finally {
    await report.close()
  }
}

const reported = async () => {
  const lines = (await readFile(`${path}.report`, 'utf8')).trimEnd().split('\n')
  return lines.map((line) => (JSON.parse(line) as { row: number }).row)
}

test('rows are sent in batches at the rate; bad rows are reported and not sent', async () => {
  const { url, batches } = await startApi(create)
  const { counts } = await run(url)
  expect(counts).toMatchObject({ created: 23, invalid: 2, failed: 0 })
  expect(batches.map(({ length }) => length)).toEqual([9, 9, 5])
  expect(waitedMs).toBeCloseTo(625) // 25 rows at 40 per second
  expect(await reported()).toEqual([10, 20])
  expect(await readProgress(path)).toBeUndefined()
})

test('a 503, a lost connection and unconfirmed rows are retried', async () => {
  const { url, batches } = await startApi((rows, request) => {
    if (request === 0) return 503
    if (request === 1) return 'reset'
    return request === 2
      ? rows.map((row, i) => resultOf(i < 4 ? 'created' : 'failed')(row))
      : create(rows, request)
  })
  const { counts, retries } = await run(url)
  expect(counts).toMatchObject({ created: 23, invalid: 2, failed: 0 })
  expect(batches.map(({ length }) => length)).toEqual([9, 9, 9, 5, 9, 5])
  expect(retries).toEqual([
    expect.stringMatching(/503: scripted/),
    expect.stringMatching(/cannot reach/),
    expect.stringMatching(/not confirmed/),
  ])
})

test('rows that an outage leaves unconfirmed are sent by the next run', async () => {
  const { url } = await startApi((rows, request) =>
    request === 0 ? rows.map((row, i) => resultOf(i < 4 ? 'created' : 'failed')(row)) : 503,
  )
  await expect(run(url)).rejects.toThrow(/stopped after 0 rows: .*503/)
})

test('rows that are never confirmed fail, if the service confirms others', async () => {
  const { url } = await startApi((rows) =>
    rows.map((row) => resultOf(row.short_code === 'c3' ? 'failed' : 'created')(row)),
  )
  const { counts } = await run(url)
  expect(counts).toMatchObject({ created: 22, invalid: 2, failed: 1 })
  expect(waitedMs).toBeGreaterThan(60_000)
  expect(waitedMs).toBeLessThan(90_000)
  expect(await reported()).toEqual([3, 10, 20])
})

test('an import stops after 5 s without a first response, 60 s without a further one', async () => {
  await expect(run('http://127.0.0.1:1')).rejects.toThrow(/stopped after 0 rows: cannot reach/)
  expect(waitedMs).toBeGreaterThan(5000)
  expect(waitedMs).toBeLessThan(20_000)
  const { url, batches } = await startApi((rows, request) =>
    request === 0 ? create(rows, request) : 503,
  )
  await expect(run(url)).rejects.toThrow(/10 rows: .*503: scripted; the same command continues/)
  expect(batches.length).toBeGreaterThan(10)
  expect(waitedMs).toBeGreaterThan(60_000)
})

test.each([401, 404, 413, 500])('a %i is not retried', async (status) => {
  const { url, batches } = await startApi(() => status)
  await expect(run(url)).rejects.toThrow(new RegExp(`returned ${status}: scripted`))
  expect(batches).toHaveLength(1)
})

test('a stopped import continues after its recorded rows, and so does its report', async () => {
  const { url, batches } = await startApi(create)
  const rows = rowsOf(12, new FormatError('damaged'))
  await expect(run(url, { rows })).rejects.toThrow(
    /^import stopped after 10 rows: .*damaged; correct the file, then run the same command$/,
  )
  expect(await readProgress(path)).toMatchObject({ rows: 10, counts: { created: 9, invalid: 1 } })
  await appendFile(`${path}.report`, '{"row":11}\n'.repeat(100)) // after the recorded rows
  batches.splice(0)
  const { counts } = await run(url)
  expect(counts).toMatchObject({ created: 23, invalid: 2 })
  expect(batches.flat()[0]).toBe('c11')
  expect(await reported()).toEqual([10, 20])
  expect(await readProgress(path)).toBeUndefined()
})

test('an import continues even if a corrected file has its rows on other lines', async () => {
  const { url } = await startApi(create)
  const rows = rowsOf(12, new FormatError('damaged'))
  await expect(run(url, { rows })).rejects.toThrow('damaged')
  async function* movedRows(): Rows {
    for await (const row of rowsOf(25)) yield { ...row, line: row.line + 1 }
  }
  const { counts } = await run(url, { rows: movedRows() })
  expect(counts).toMatchObject({ created: 23, invalid: 2 })
})

test('progress of another import is rejected', async () => {
  const { url, batches } = await startApi(create)
  const stop = () => run(url, { rows: rowsOf(12, new FormatError('damaged')) })
  await expect(stop()).rejects.toThrow('damaged')
  batches.splice(0)
  async function* otherRows(): Rows {
    for await (const row of rowsOf(25)) yield row.row === 2 ? { ...row, row: 3 } : row
  }
  const foreign = /^\S+ belongs to another import: .*; delete it to import .* first row$/
  await expect(run(url, { format: 'yourls' })).rejects.toThrow(foreign)
  await expect(run(url, { rows: otherRows() })).rejects.toThrow(/first 10 rows differ/)
  await expect(run(url, { rows: rowsOf(9) })).rejects.toThrow(/it has 10 rows, the file has only 9/)
  await writeFile(`${path}.report`, '')
  await expect(run(url)).rejects.toThrow(/lacks lines .*: delete the progress file/)
  await writeFile(path, '{}')
  await expect(run(url)).rejects.toThrow(/is not a progress file: delete it/)
  expect(batches).toEqual([])
})

test('an import stops when it is aborted, and records its progress', async () => {
  const { url } = await startApi(create)
  const stopping = new AbortController()
  const onBatch = () => {
    stopping.abort()
  }
  const { signal } = stopping
  await expect(run(url, { signal, onBatch })).rejects.toThrow(/10 rows: a signal was received/)
  expect(await readProgress(path)).toMatchObject({ rows: 10 })
})

test('the report contains the old and the new code if a code was replaced', async () => {
  const { url } = await startApi((rows) =>
    rows.map((row) => ({ ...resultOf('created')(row), code: 'replaced' })),
  )
  const { counts } = await run(url)
  expect(counts).toMatchObject({ created: 0, replaced: 23 })
  const [first] = (await readFile(`${path}.report`, 'utf8')).split('\n')
  const expected = { row: 1, line: 2, short_code: 'c1', code: 'replaced' }
  expect(JSON.parse(first ?? '')).toMatchObject(expected)
})
