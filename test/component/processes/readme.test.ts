// Runs the commands of README.md as printed against a real process; only the ports differ.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type Standalone, startStandalone } from '../../kit/processes/standalone.ts'

const run = promisify(execFile)
const readme = readFileSync('README.md', 'utf8')
const commands = [...readme.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
  block.trim().split('\n'),
)
/** The commands that start the service and run every test; CI and start.test.ts run them. */
const testedElsewhere = ['npm start', 'npm test']

let service: Standalone

beforeAll(async () => {
  service = await startStandalone()
}, 30_000)

afterAll(async () => {
  await service.stop()
}, 30_000)

test('README.md has the commands to start the service and to run the tests', () => {
  expect(commands).toEqual(expect.arrayContaining(testedElsewhere))
})

test('every other command of README.md works as printed', async () => {
  const outputs = new Map<string, string>()
  for (const command of commands.filter((line) => !testedElsewhere.includes(line))) {
    const local = command.replaceAll('localhost:8080', `localhost:${String(service.port)}`)
    const env = { ...process.env, API_URL: service.baseUrl, ADMIN_URL: service.adminUrl }
    const { stdout } = await run('sh', ['-ec', local], { env, timeout: 30_000 })
    outputs.set(command, stdout)
  }
  const outputOf = (piece: string) =>
    [...outputs].find(([command]) => command.includes(piece))?.[1] ?? `no command has ${piece}`
  expect(outputOf('curl -X POST')).toContain('"short_url"')
  expect(outputOf('curl -i')).toMatch(
    /^HTTP\/1\.1 302 Found\r\nLocation: https:\/\/example\.com\/\r$/m,
  )
  expect(outputOf('link create')).toMatch(/^http\S+\/second\n$/)
  expect(outputOf('link list')).toMatch(/^readme .*^second /ms)
  expect(outputOf('link show')).toContain('active')
  expect(outputOf('link disable')).toContain('disabled')
  expect(outputOf('link enable')).toContain('active')
  expect(JSON.parse(outputOf('pool status'))).toMatchObject([{ pool: 'default' }])
  expect(outputOf('standalone --help')).toContain('DATA_DIR')
}, 120_000)

test('README.md links only to files that exist', () => {
  for (const [, path = ''] of readme.matchAll(/\]\(([^)#]+)\)/g)) {
    expect(() => readFileSync(path)).not.toThrow(/ENOENT/)
  }
})
