// The settings of RateLimitPolicies: one sentence for each fault of the domains and the TLS files.
import { expect, test } from '@jest/globals'
import { configProblems } from '../../../test/kit/config-problems.ts'
import { parseConfig } from '../../config/config.ts'
import { policyDependentSettings, policyOptionsOf, policySettings } from './settings.ts'

const parse = (env: Readonly<Record<string, string>>) =>
  policyOptionsOf(parseConfig(policySettings, env, policyDependentSettings))
const problemsOf = (env: Readonly<Record<string, string>>) => configProblems(() => parse(env))
const grant = { domain: 'shop', namespaces: ['a', 'b'] }
const domainsOf = (...grants: readonly object[]) => ({
  ADS_PORT: '18000',
  RATELIMIT_DOMAINS: JSON.stringify(grants),
})

test('without settings no policies are watched', () => {
  expect(parse({})).toBeUndefined()
})

test('the domains, their namespaces and the first entry are parsed', () => {
  const below = { key: 'tenant', value: 'a' }
  expect(parse(domainsOf(grant, { ...grant, below, apiKeys: true }))).toEqual({
    port: 18_000,
    tls: undefined,
    secret: undefined,
    grants: [grant, { ...grant, below, apiKeys: true }],
  })
})

test.each<readonly [object, string]>([
  [{}, '[0].domain: Invalid input: expected string, received undefined'],
  [{ ...grant, domain: '' }, '[0].domain: Too small: expected string to have >=1 characters'],
  [{ ...grant, namespaces: [] }, '[0].namespaces: Too small: expected array to have >=1 items'],
  [{ ...grant, namespaces: ['A'] }, '[0].namespaces[0]: must be the name of a namespace'],
  [{ ...grant, namespaces: ['*'] }, '[0].namespaces[0]: must be the name of a namespace'],
  [{ ...grant, below: { key: 'k' } }, '[0].below.value: Invalid input: expected string'],
  [{ ...grant, apiKeys: 'yes' }, '[0].apiKeys: Invalid input: expected boolean, received string'],
  [{ ...grant, bytes: 10 }, '[0].bytes: Too small: expected number to be >=1000'],
  [{ ...grant, domains: 1 }, '[0]: Unrecognized key: "domains"'],
])('the grant %j: %s', (given, problem) => {
  expect(problemsOf(domainsOf(given)).join('\n')).toContain(`RATELIMIT_DOMAINS${problem}`)
})

test('domains that are not JSON, are empty, or have too many namespaces are rejected', () => {
  const port = { ADS_PORT: '1' }
  const [problem = ''] = problemsOf({ ...port, RATELIMIT_DOMAINS: '{' })
  expect(problem).toMatch(/^RATELIMIT_DOMAINS must be JSON: /)
  expect(problemsOf({ ...port, RATELIMIT_DOMAINS: '[]' }).join()).toContain('>=1 items')
  const many = (from: number) => ({
    domain: 'd',
    namespaces: Array.from({ length: 60 }, (_, at) => `n-${from + at}`),
  })
  expect(problemsOf(domainsOf(many(0), many(0)))).toEqual([])
  expect(problemsOf(domainsOf(many(0), many(60)))).toEqual([
    'RATELIMIT_DOMAINS contains 120 namespaces: at most 100 namespaces are allowed',
  ])
})

test('the shares of all namespaces must fit', () => {
  const tenants = { domain: 'd', namespaces: Array.from({ length: 99 }, (_, at) => `n-${at}`) }
  const large = { domain: 'e', namespaces: ['large', 'n-0'], bytes: 2_000_000 }
  expect(problemsOf(domainsOf(tenants, { ...large, bytes: 36_700 }))).toEqual([])
  expect(problemsOf(domainsOf(tenants, large))).toEqual([
    'RATELIMIT_DOMAINS gives its 100 namespaces 7596600 bytes of rules: at most 3670016 are ' +
      'allowed: lower some "bytes"',
  ])
  const { grants = [] } = parse(domainsOf({ ...grant, bytes: 50_000 })) ?? {}
  expect(grants).toEqual([{ ...grant, bytes: 50_000 }])
})

test.each<readonly [Readonly<Record<string, string>>, string]>([
  [{ ADS_PORT: '1' }, 'ADS_PORT and RATELIMIT_DOMAINS require each other: set both, or neither'],
  [
    { RATELIMIT_DOMAINS: '[{"domain":"d","namespaces":["n"]}]' },
    'ADS_PORT and RATELIMIT_DOMAINS require each other: set both, or neither',
  ],
  [{ ADS_TLS_CERT: 'a' }, 'ADS_TLS_CERT and ADS_TLS_KEY require each other: set both, or neither'],
  [{ ADS_TLS_KEY: 'a' }, 'ADS_TLS_CERT and ADS_TLS_KEY require each other: set both, or neither'],
  [{ ADS_TLS_CLIENT_CA: 'a' }, 'ADS_TLS_CLIENT_CA requires ADS_TLS_CERT and ADS_TLS_KEY'],
  [{ ADS_VERSION_SECRET: 's' }, 'ADS_VERSION_SECRET requires ADS_PORT and RATELIMIT_DOMAINS'],
  [{ ADS_PORT: '65536' }, 'ADS_PORT must be an integer from 0 to 65535: current value is "65536"'],
])('%j: %s', (env, problem) => {
  expect(problemsOf(env)).toEqual([problem])
})

test('with a port, only the TLS files that cannot be read are reported', () => {
  const files = { ADS_TLS_CERT: '/missing/a', ADS_TLS_KEY: '/missing/b' }
  const authority = { ADS_TLS_CLIENT_CA: '/missing/c' }
  const env = { ...domainsOf(grant), ADS_VERSION_SECRET: 's', ...files, ...authority }
  const names = problemsOf(env).map((problem) => problem.split(' ')[0])
  expect(names).toEqual(['ADS_TLS_CERT', 'ADS_TLS_KEY', 'ADS_TLS_CLIENT_CA'])
  const config = { ...parseConfig(policySettings, domainsOf(grant)), ...files, ...authority }
  expect(policyOptionsOf(config)?.tls).toEqual({
    ...{ certificate: '/missing/a', key: '/missing/b', authorities: '/missing/c' },
  })
})
