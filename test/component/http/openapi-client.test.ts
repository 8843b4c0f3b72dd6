// Programs use the OpenAPI document of the real process: a generator creates a typed client from
// it, and a shell runs its curl commands. With and without required API keys.
import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createClient } from '@hey-api/openapi-ts'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { OpenApiDocument } from '../../../src/http/create/openapi.ts'
import { renderCurl } from '../../../src/http/pages/curl.ts'
import { findCurl } from '../../dependencies/curl.ts'
import { createOpenApiCheck } from '../../kit/http/openapi-check.ts'
import type { RawResponse } from '../../kit/http/raw-http.ts'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const TEST_MS_MAX = 180_000
const GENERATION_MS_MAX = 120_000
const COMMAND_MS_MAX = 60_000
const root = fileURLToPath(new URL('../../..', import.meta.url))
const run = promisify(execFile)
const key = `curtail_${randomBytes(32).toString('base64url')}`
const kinds = ['open', 'keyed'] as const

const started: Standalone[] = []
let folder: string
let services: Readonly<Record<(typeof kinds)[number], Standalone>>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'curtail-openapi-'))
  const keys = join(folder, 'api-keys.ndjson')
  const hash = `sha256:${createHash('sha256').update(key).digest('hex')}`
  await writeFile(keys, `${JSON.stringify({ name: 'docs', creator_id: '7', hash })}\n`)
  services = {
    open: await start({}),
    keyed: await start({ API_KEYS: keys, API_KEY_REQUIRED: 'true' }),
  }
}, TEST_MS_MAX)

async function start(env: Readonly<Record<string, string>>): Promise<Standalone> {
  const service = await startStandalone({ env })
  started.push(service)
  return service
}

afterAll(async () => {
  await Promise.all(started.map((service) => service.stop()))
  await rm(folder, { recursive: true })
}, TEST_MS_MAX)

/** The configuration of a project that uses the client and has no build step. */
const compilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  target: 'es2024',
  lib: ['es2024', 'dom'],
  module: 'nodenext',
  allowImportingTsExtensions: true,
  erasableSyntaxOnly: true,
  types: ['node'],
  typeRoots: [join(root, 'node_modules/@types')],
}

/** A program that uses the client. */
const program = `
import { createClient } from './generated/client/index.ts'
import { createLink, resolveLink } from './generated/index.ts'
import type { Problem } from './generated/types.gen.ts'

const [baseUrl = '', key] = process.argv.slice(2)
const client = createClient({ baseUrl, auth: () => key })
const body = { long_url: 'https://example.com/', ttl_days: 7 }
const created = await createLink({ client, body, headers: { 'Idempotency-Key': 'client-1' } })
const shortUrl: string = created.data?.short_url ?? ''
const expiresAt: string | null = created.data?.expires_at ?? null
const rejected = await createLink({ client, body: { long_url: 'not a URL' } })
const problem: Problem | undefined = rejected.error
const path = { code: shortUrl.slice(shortUrl.lastIndexOf('/') + 1) }
const resolved = await resolveLink({ client, path, redirect: 'manual' })
const unknown = await resolveLink({ client, path: { code: 'unknown' } })
const anonymous = await createLink({ client: createClient({ baseUrl }), body })
console.log(JSON.stringify({
  shortUrl,
  expiresAt,
  rejected: [problem?.status, problem?.errors?.map(({ pointer }) => pointer)],
  resolved: [resolved.response?.status, resolved.response?.headers.get('Location')],
  unknown: unknown.error?.title,
  anonymous: anonymous.response?.status,
}))
`

/** A program with a request that the compiler must reject. */
const wrongProgram = `
import { createLink } from './generated/index.ts'

await createLink({ body: { long_url: 1 } })
`

async function generateClient(kind: (typeof kinds)[number]): Promise<void> {
  await createClient({
    input: `${services[kind].baseUrl}/openapi.json`,
    output: { path: join(folder, kind, 'generated'), module: { extension: '.ts' } },
    logs: { file: false, level: 'silent' },
  })
  await writeFile(join(folder, kind, 'program.ts'), program)
  await writeFile(join(folder, kind, 'wrong-program.ts'), wrongProgram)
}

/** The errors of the compiler in the generated clients and the programs. */
async function compilerErrors(): Promise<string[]> {
  const include = kinds.map((kind) => `${kind}/**/*.ts`)
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }))
  try {
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    await run(process.execPath, [compiler], { cwd: folder, timeout: COMMAND_MS_MAX })
    return []
  } catch (error) {
    return (error as { stdout: string }).stdout.split('\n').filter((line) => /^\S/.test(line))
  }
}

test(
  'a generated client compiles, creates and resolves links, and reads problems',
  async () => {
    await Promise.all(kinds.map(generateClient))
    const isRejected = expect.stringMatching(/wrong-program\.ts.*'number' is not assignable/)
    expect(await compilerErrors()).toEqual([isRejected, isRejected])
    for (const kind of kinds) {
      const { baseUrl, linkBase } = services[kind]
      const args = [join(folder, kind, 'program.ts'), baseUrl, ...(kind === 'keyed' ? [key] : [])]
      const { stdout } = await run(process.execPath, args, { timeout: COMMAND_MS_MAX })
      const { shortUrl, expiresAt, ...others } = JSON.parse(stdout) as Record<string, unknown>
      expect(String(shortUrl)).toMatch(new RegExp(`^${linkBase}/[0-9A-Za-z]{7}$`))
      expect(Date.parse(String(expiresAt)) - Date.now()).toBeGreaterThan(6 * 86_400_000)
      expect(others).toEqual({
        rejected: [422, ['/long_url']],
        resolved: [302, 'https://example.com/'],
        unknown: 'There is nothing here',
        anonymous: kind === 'keyed' ? 401 : 201,
      })
    }
  },
  GENERATION_MS_MAX,
)

/** The response that `curl -i` printed. */
function responseOf(output: string): RawResponse {
  const headersEnd = output.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = output.slice(0, headersEnd).split('\r\n')
  const headers = lines.map((line): [string, string] => {
    const [name = '', ...value] = line.split(': ')
    return [name, value.join(': ')]
  })
  const body = Buffer.from(output.slice(headersEnd + 4))
  return { status: Number(statusLine.split(' ')[1]), headers, body }
}

test.each(kinds)(
  'the curl command of every operation returns its documented success (keys: %s)',
  async (kind) => {
    const { baseUrl } = services[kind]
    const read = await fetch(`${baseUrl}/openapi.json`)
    const document = (await read.json()) as OpenApiDocument
    const check = createOpenApiCheck(document)
    await fetch(`${baseUrl}/v1/urls`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-API-Key': key },
      body: JSON.stringify({ long_url: 'https://example.com/', custom_alias: 'spring-26' }),
    })
    const env = { PATH: `${dirname(await findCurl())}:/usr/bin:/bin`, API_KEY: key }
    const statuses: Record<string, number> = {}
    for (const [path, item] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(item)) {
        const command = renderCurl(document, { method: method.toUpperCase(), path, operation })
        const { stdout } = await run('sh', ['-c', command], { env, timeout: COMMAND_MS_MAX })
        const content = operation.requestBody?.content['application/json']
        const body = content && JSON.stringify(content.example)
        const filledPath = path.replace('{code}', 'spring-26')
        const response = responseOf(stdout)
        check({ method, path: filledPath, ...(body !== undefined && { body }) }, response)
        statuses[operation.operationId] = response.status
      }
    }
    expect(statuses).toEqual({ createLink: 201, resolveLink: 302, probeLink: 302, getQrCode: 200 })
  },
  TEST_MS_MAX,
)
