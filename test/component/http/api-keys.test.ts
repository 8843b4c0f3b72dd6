// API keys on the real standalone process: files that change while it runs, the creator of links,
// the limit of a key, required keys, and that neither a key nor its hash is stored or logged.
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type Client, codeOf, createLinkRequest, openClient } from '../../kit/http/client.ts'
import { type RawResponse, headerOf, jsonOf, openConnection } from '../../kit/http/raw-http.ts'
import { type MountedSecret, mountSecret } from '../../kit/mounted-secret.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'
import { waitFor, withinDeadline } from '../../kit/wait-for.ts'

const TEST_MS_MAX = 180_000
/** Changes are applied within 5 s. */
const APPLIED_MS_MAX = 5 * 5000
const CREATOR = '9223372036854775807'

const generateKey = () => `curtail_${randomBytes(32).toString('base64url')}`
const digestOf = (key: string) => createHash('sha256').update(key).digest()
const lineOf = (name: string, key: string, change: object = {}) =>
  `${JSON.stringify({
    name,
    creator_id: CREATOR,
    hash: `sha256:${digestOf(key).toString('hex')}`,
    ...change,
  })}\n`
const body = { long_url: 'https://example.com/' }
const nameOf = (response: RawResponse) => String(jsonOf(response)['type']).split('/').at(-1)

describe('a file', () => {
  const [key, busyKey] = [generateKey(), generateKey()]
  let folder: string
  let file: string
  let service: Standalone
  let client: Client
  let output = ''

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'curtail-keys-'))
    file = join(folder, 'api-keys.ndjson')
    service = await startStandalone({
      env: { API_KEYS: file, RATE_LIMITS: '', LOG_LEVEL: 'trace' },
      dataDir: join(folder, 'data'),
      onSpawn({ stdout, stderr }) {
        for (const stream of [stdout, stderr])
          stream?.on('data', (chunk: Buffer) => (output += chunk.toString('latin1')))
      },
    })
    client = await openClient(service.port)
  }, TEST_MS_MAX)

  afterAll(async () => {
    client.close()
    await service.stop()
    await rm(folder, { recursive: true })
  }, TEST_MS_MAX)

  const create = (headers: Record<string, string> = { 'X-API-Key': key }) =>
    client.create(body, headers)
  const readMetrics = async () => (await fetch(`${service.adminUrl}/metrics`)).text()

  /** The creator of the created link, as the admin API reports it. */
  async function creatorOf(response: RawResponse): Promise<unknown> {
    const read = await fetch(`${service.adminUrl}/admin/links/${codeOf(response)}`)
    return ((await read.json()) as Record<string, unknown>)['creator_id']
  }

  /** Waits until creates with the key have this creator. */
  async function untilCreator(creator: string | null): Promise<void> {
    const hasCreator = async () => {
      const response = await create()
      return response.status === 201 && (await creatorOf(response)) === creator
    }
    await waitFor(`the creator to be ${creator}`, hasCreator, APPLIED_MS_MAX)
  }

  test('that is written after the start takes effect', async () => {
    const first = await create()
    expect([await creatorOf(first), headerOf(first, 'X-RateLimit-Limit')]).toEqual([null, '500'])
    await writeFile(file, `# keys\n${lineOf('shop', key)}${lineOf('busy', busyKey)}`)
    await untilCreator(CREATOR)
    expect(await readMetrics()).toMatch(/^curtail_list_entries\{list="api-keys"\} 2$/m)
    expect(await creatorOf(await create({}))).toBeNull()
    expect(await creatorOf(await create({ 'X-API-Key': generateKey() }))).toBeNull()
  })

  test('has keys whose limit replaces that of the address', async () => {
    const withKey = await create()
    expect(headerOf(withKey, 'X-RateLimit-Limit')).toBe('200')
    expect(headerOf(await create({}), 'X-RateLimit-Limit')).toBe('500')
    const createBusy = () => create({ 'X-API-Key': busyKey })
    let denied: RawResponse | undefined
    await waitFor('a 429', async () => {
      const responses = await Promise.all(Array.from({ length: 100 }, () => createBusy()))
      denied = responses.find(({ status }) => status === 429)
      return denied !== undefined
    })
    expect(denied && jsonOf(denied)).toMatchObject({ rule: 'creates-per-api-key' })
    expect([(await create({})).status, (await create()).status]).toEqual([201, 201])
    await waitFor('a token of the key', async () => (await createBusy()).status === 201)
  })

  test('separates the Idempotency-Keys of its creator and of other clients', async () => {
    const anonymous = { 'Idempotency-Key': 'k' }
    const withKey = { ...anonymous, 'X-API-Key': key }
    for (const [headers, creator] of [
      [anonymous, null],
      [withKey, CREATOR],
    ] as const) {
      const [first, replay] = [await create(headers), await create(headers)]
      expect(headerOf(first, 'Idempotency-Replayed')).toBeUndefined()
      expect(headerOf(replay, 'Idempotency-Replayed')).toBe('true')
      expect(codeOf(replay)).toBe(codeOf(first))
      expect(await creatorOf(first)).toBe(creator)
    }
  })

  test('with faulty lines keeps its other keys; the log has the places only', async () => {
    const faulty = [lineOf('more', key), lineOf('expired', generateKey(), { secret: key }), key]
    await writeFile(file, lineOf('shop', key) + faulty.join(''))
    const isReported = async () =>
      /^curtail_list_faults\{list="api-keys"\} 3$/m.test(await readMetrics())
    await waitFor('the faults', isReported, APPLIED_MS_MAX)
    expect(await creatorOf(await create())).toBe(CREATOR)
    const logged = () => service.log.find(({ msg }) => msg === 'lines of a list ignored')
    await waitFor('the line of the faults', () => logged() !== undefined)
    expect(logged()?.['first']).toEqual([
      `${file}:2: hash must be unique: an earlier line has the same hash`,
      expect.stringContaining(`${file}:3: a line must be a JSON object with the members name,`),
      expect.stringContaining(`${file}:4: a line must be a JSON object with the members name,`),
    ])
  })

  test('without a key any longer revokes it', async () => {
    await untilCreator(CREATOR)
    await writeFile(file, lineOf('other', generateKey()))
    await untilCreator(null)
  })

  test('leaves no key and no hash in the output, the metrics and the database', async () => {
    const metrics = await readMetrics()
    await service.stop()
    const names = (await readdir(service.dataDir)).map((name) => join(service.dataDir, name))
    const files = await Promise.all(names.map((name) => readFile(name)))
    expect(files.some((bytes) => bytes.includes('https://example.com/'))).toBe(true)
    const searched = [Buffer.from(output), Buffer.from(metrics), ...files]
    const digest = digestOf(key)
    const secrets = [key, key.slice('curtail_'.length), digest, digest.toString('hex')]
    for (const secret of [...secrets, digest.toString('base64')]) {
      expect(searched.map((bytes) => bytes.includes(secret))).toEqual(searched.map(() => false))
    }
    expect(output).toContain('"list":"api-keys"')
  })
})

describe('API_KEY_REQUIRED', () => {
  const [first, second] = [generateKey(), generateKey()]
  let secret: MountedSecret
  let service: Standalone
  let client: Client

  beforeAll(async () => {
    secret = await mountSecret({ 'api-keys.ndjson': lineOf('first', first) })
    const env = { API_KEYS: dirname(secret.pathOf('api-keys.ndjson')), API_KEY_REQUIRED: 'true' }
    service = await startStandalone({ env })
    client = await openClient(service.port)
  }, TEST_MS_MAX)

  afterAll(async () => {
    client.close()
    await service.stop()
    await secret.remove()
  }, TEST_MS_MAX)

  const statusWith = async (key: string) => (await client.create(body, { 'X-API-Key': key })).status

  test('rejects creates without a valid key, and admits those with one', async () => {
    const rejected = await client.create(body)
    expect([rejected.status, nameOf(rejected)]).toEqual([401, 'api-key-required'])
    expect(headerOf(rejected, 'WWW-Authenticate')).toBe('ApiKey')
    expect([await statusWith(first), await statusWith(second)]).toEqual([201, 401])
    const page = await client.send({
      method: 'POST',
      path: '/',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: `long_url=${encodeURIComponent(body.long_url)}`,
    })
    expect([page.status, headerOf(page, 'Content-Type')]).toEqual([401, 'text/html; charset=utf-8'])
    const home = await client.send({ path: '/' })
    expect(home.status).toBe(200)
    for (const { body: html } of [page, home]) {
      expect(html.toString()).toContain('send an API key in the header')
      expect(html.toString()).not.toContain('Paste a link')
      expect(html.toString()).not.toContain('<form')
    }
  })

  test('applies a change of a mounted Secret', async () => {
    await secret.swap({ 'api-keys.ndjson': lineOf('second', second) })
    const isApplied = async () => (await statusWith(second)) === 201
    await waitFor('the new key', isApplied, APPLIED_MS_MAX)
    expect(await statusWith(first)).toBe(401)
  })

  test('rejects a create before its body, and without 100 Continue', async () => {
    for (const expectation of ['', 'Expect: 100-continue\r\n']) {
      const connection = await openConnection(service.port)
      connection.send(
        'POST /v1/urls HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
          `${expectation}Content-Length: 10000000000\r\n\r\n`,
      )
      const response = await connection.nextResponse()
      expect([response.status, headerOf(response, 'Connection')]).toEqual([401, 'close'])
      await withinDeadline('the close', connection.closed)
      connection.close()
    }
    const connection = await openConnection(service.port)
    expect((await connection.exchange(createLinkRequest(body))).status).toBe(401)
    expect((await connection.exchange({ path: '/robots.txt' })).status).toBe(200)
    connection.close()
  })
})
