// `curtail link` for many links on an API that fails: what the command prints, and its exit code.
import { afterEach, expect, test } from '@jest/globals'
import { type ApiFault, apiLink, type LinksApi, startLinksApi } from '../../kit/http/links-api.ts'
import { runCurtail } from '../../kit/processes/run-curtail.ts'
import { waitFor } from '../../kit/wait-for.ts'

const cleanUps: (() => unknown)[] = []
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

const codes = ['a', 'b', 'c', 'd', 'e']

/** Runs a command on an API with some links that rejects changes of `a`, after those of others. */
async function operate(args: readonly string[]) {
  const reject: ApiFault = async (request, res) => {
    if (!request.startsWith('POST /admin/links/a/')) return false
    await waitFor('the other changes', () => disabled().length === codes.length - 1)
    res.writeHead(401).end('{"detail":"no token"}')
    return true
  }
  const links = codes.map((code) => apiLink(code))
  const disabled = () => [...api.links.values()].filter(({ state }) => state === 'disabled')
  const api: LinksApi = await startLinksApi(links, reject)
  cleanUps.push(api.close)
  return runCurtail(['link', 'disable', ...args], { ADMIN_URL: api.url, ADMIN_TOKEN: 'a-token' })
}

test('if the first link fails, the other changes are in the summary', async () => {
  const run = await operate(['--target-host=example.com', '--rate=1000'])
  const counts = 'already disabled 0, expired or deleted 0, not found 0, scanned 0'
  expect(run).toMatchObject({ exitCode: 1, stdout: `disabled 4, ${counts}\n` })
  expect(run.stderr).toMatch(
    /^curtail: link disable stopped after 0 links: .*no token; restart from the first link\n$/,
  )
})

test.each([
  ['--target-host=com', /^curtail: --target-host must not be a host of one label, .*: it is "com"/],
  ['--target-host=a.com:80', /^curtail: --target-host must not have a port \(all ports are sel/],
  ['--creator=1 --creator=2', /: --creator is given 2 times: it is allowed once\n/],
])('%s changes nothing', async (args, message) => {
  const run = await operate(args.split(' '))
  expect(run).toMatchObject({ exitCode: 2, stdout: '' })
  expect(run.stderr).toMatch(message)
})
