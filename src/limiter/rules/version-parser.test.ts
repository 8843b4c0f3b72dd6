// Which versions are parsed, and where: small ones in the main thread, others in a thread.
import { expect, test } from '@jest/globals'
import { configBytes, responseBytes } from '../../../test/kit/ratelimit/xds-messages.ts'
import { readDiscoveryResponse, RESOURCES_MAX } from '../../protobuf/discovery.ts'
import { createVersionParser, RULES_TYPE_URL } from './version-parser.ts'

const config = (domain: string, count = 1) =>
  configBytes({
    name: domain,
    domain,
    descriptors: Array.from({ length: count }, (_, at) => ({
      key: `key${String(at).padEnd(20, 'x')}`,
      rateLimit: { unit: 'MINUTE', requestsPerUnit: 1 },
    })),
  })

const versionOf = (
  resources: readonly Buffer[],
  { typeUrl = RULES_TYPE_URL, itemType = RULES_TYPE_URL } = {},
) => {
  const items = resources.map((value) => ({ typeUrl: itemType, value }))
  return readDiscoveryResponse(
    responseBytes({ versionInfo: 'v1', nonce: 'n', typeUrl, resources: items }),
  )
}

function open(domain = '') {
  const settings = { REQUIRED_DOMAIN: domain, MERGE_DOMAIN_CONFIG: false }
  const deps = { config: settings, denyConsumes: true, defaultAlgorithm: 'fixed_window' }
  const parser = createVersionParser(deps as never)
  const parse = async (version: ReturnType<typeof versionOf>) => {
    const parsed = await parser.parse(version)
    return 'faults' in parsed
      ? parsed.faults.map(({ file, path, message }) => [file, path, message])
      : [...parsed.rules.keys()]
  }
  return { parser, parse }
}

test('a version of the type of rules is parsed', async () => {
  expect(await open().parse(versionOf([config('a'), config('b')]))).toEqual(['a', 'b'])
  expect(await open().parse(versionOf([]))).toEqual([])
})

test('other types are faults', async () => {
  const { parse } = open()
  const message = (type: string) => `the type must be ${RULES_TYPE_URL}: it is "${type}"`
  expect(await parse(versionOf([config('a')], { typeUrl: 'other' }))).toEqual([
    ['the version', '', message('other')],
  ])
  const long = 'x'.repeat(300)
  expect(await parse(versionOf([config('a'), config('b')], { itemType: long }))).toEqual([
    ['resources[0]', '', message('x'.repeat(200))],
    ['resources[1]', '', message('x'.repeat(200))],
  ])
})

test('a version has at most RESOURCES_MAX resources', async () => {
  const { parse } = open()
  const domains = Array.from({ length: RESOURCES_MAX }, (_, at) => `d${String(at)}`)
  expect(await parse(versionOf(domains.map((domain) => config(domain))))).toEqual(domains)
  expect(await parse(versionOf([...domains, 'more'].map((domain) => config(domain))))).toEqual([
    ['the version', '', `a version must have at most ${RESOURCES_MAX} resources: it has more`],
  ])
})

test('the required domain must have rules', async () => {
  expect(await open('a').parse(versionOf([config('a')]))).toEqual(['a'])
  const missing =
    "no resource has rules for the required domain 'b': the domains with rules are 'a'"
  expect(await open('b').parse(versionOf([config('a')]))).toEqual([['the version', '', missing]])
})

test('large versions are parsed in a thread: during the start, only very large ones', async () => {
  const { parser, parse } = open()
  expect(parser.isStopped()).toBe(false)
  await parser.stop() // from now on, a parse in a thread throws an error
  expect(parser.isStopped()).toBe(true)
  const [small, large, huge] = [100, 500, 8000].map((count) => versionOf([config('a', count)]))
  if (small === undefined || large === undefined || huge === undefined) throw new Error('absent')
  expect([small, large, huge].map(({ message }) => Math.round(message.length / 1024))).toEqual([
    3, 16, 258,
  ])
  expect(await parse(small)).toEqual(['a'])
  expect(await parse(large)).toEqual(['a'])
  await expect(parse(huge)).rejects.toThrow()
  parser.startServing()
  expect(await parse(small)).toEqual(['a'])
  await expect(parse(large)).rejects.toThrow()
})
