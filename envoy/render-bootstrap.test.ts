// Rendering of Envoy's files: invalid settings are rejected with messages, templates use only the
// supported subset of the language, and values copied from the code equal the originals.
import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parse } from 'yaml'
import { problemTypes } from '../src/http/problem.ts'
import { parseCodePath } from '../src/links/alias.ts'
import { completeEdgeSettings, edgeDefaults, type GivenEdgeSettings } from './edge-settings.ts'
import { renderBootstrap, renderCertificate, renderTemplate } from './render-bootstrap.ts'

const pods = [{ host: 'pods', port: 8080 }]
const given: GivenEdgeSettings = {
  baseUrl: 'https://cur.tl',
  redirectEndpoints: pods,
  createEndpoints: pods,
  limiterEndpoints: [{ host: 'limiter', port: 8081 }],
}

describe('renderTemplate()', () => {
  const values = { yes: true, no: '', n: 8080, name: 'a<b', list: [{ host: 'x' }, { host: 'y' }] }

  test('renders values as strings and as JSON', () => {
    expect(renderTemplate('a: {{ .n | toJson }}}\nb: "{{ .name }}"', values)).toBe(
      'a: 8080}\nb: "a<b"',
    )
    expect(renderTemplate('{{ .name | toJson }}', values)).toBe('"a\\u003cb"')
  })

  test('renders the lines of a true condition, or those of its else', () => {
    const template =
      'x\n{{- if .yes }}\na\n{{- if .no }}\nb\n{{- else }}\nc\n{{- end }}\n{{- end }}\ny\n'
    expect(renderTemplate(template, values)).toBe('x\na\nc\ny\n')
  })

  test('renders the lines of a range for each item of the list', () => {
    const template = 'x\n{{- range .list }}\n- {{ .host | toJson }}\n{{- end }}\n'
    expect(renderTemplate(template, values)).toBe('x\n- "x"\n- "y"\n')
  })

  test.each([
    ['{{ .absent | toJson }}', /no setting absent/],
    ['{{ .n }}', /n is not a string/],
    ['{{ include "x" . }}', /not a supported action/],
    ['a\n{{- if .yes }}\nb', /line 2: the block has no end/],
    ['a\n{{- end }}', /line 2: no block is open/],
    ['a\n\n{{- if .yes }}\n{{- end }}', /line 3: after an empty line/],
  ])('rejects %j', (template, message) => {
    expect(() => renderTemplate(template, values)).toThrow(message)
  })
})

describe('renderBootstrap()', () => {
  test.each<[Record<string, unknown>, string]>([
    [{ baseUrl: 'https://cur.tl/x' }, 'baseUrl must be an origin such as https://cur.tl'],
    [{ httpPort: 0 }, 'httpPort must be an integer from 1 to 65535: it is 0'],
    [{ createEndpoints: [] }, 'createEndpoints must be a list of 1 to 100 endpoints'],
    [{ limiterEndpoints: [{ host: 'a"', port: 1 }] }, 'limiterEndpoints must be a list'],
    [{ requestTimeout: '1m' }, 'requestTimeout must be seconds such as 10s or 0.5s: it is "1m"'],
    [{ allowanceBurst: -1 }, 'allowanceBurst must be an integer from 0 to 1000000'],
    [{ trustedHops: 11 }, 'trustedHops must be an integer from 0 to 10'],
    [{ accessLogPath: 'log' }, 'accessLogPath must be an absolute path, or empty'],
    [{ certificatePath: '/a"' }, 'certificatePath must be an absolute path'],
    [{ listenAddress: '0.0.0.0', dualStack: true }, 'dualStack requires listenAddress ::'],
    [{ tracingSamplePercent: 101 }, 'tracingSamplePercent must be a number from 0 to 100'],
    [{ createHost: 'x' }, 'the edge has no setting createHost'],
  ])('rejects %j', (change, message) => {
    expect(() => renderBootstrap({ ...given, ...change })).toThrow(message)
  })

  test('lists every invalid setting in one error', () => {
    const change = { tls: 1, proxyProtocol: 'no' } as unknown as Partial<GivenEdgeSettings>
    const faults = /tls must be true or false: it is 1; proxyProtocol must be true or false/
    expect(() => renderBootstrap({ ...given, ...change })).toThrow(faults)
  })

  test('renders valid YAML with the values of the settings', () => {
    const bootstrap: unknown = parse(renderBootstrap({ ...given, tls: true, tracingHost: 'otel' }))
    expect(bootstrap).toMatchObject({ static_resources: { listeners: { length: 3 } } })
    const certificate = parse(renderCertificate(given)) as { resources: object[] }
    expect(certificate.resources[0]).toMatchObject({
      tls_certificate: { watched_directory: { path: edgeDefaults.certificateFolder } },
    })
  })
})

test('docs/edge.md lists every setting with its default, and no other', () => {
  const rows = readFileSync(new URL('../docs/edge.md', import.meta.url), 'utf8')
    .split('\n')
    .flatMap((line) => /^\| `(\w+)` +\| (.*?) +\|/.exec(line)?.slice(1, 3).join(': ') ?? [])
  const shown = Object.entries(completeEdgeSettings(given)).map(([name, value]) => {
    if (name in edgeDefaults) return `${name}: ${value === '' ? 'empty' : `\`${String(value)}\``}`
    return `${name}: ${name === 'dualStack' ? '`true` if `listenAddress` is `::`' : 'required'}`
  })
  expect(rows.sort()).toEqual(shown.sort())
})

describe('envoy.yaml', () => {
  const text = renderBootstrap(given)

  test('contains nothing of the allowance by default', () => {
    const settings = /allowance|x-curtail-beyond|select_route|set_filter_state/
    expect(text).not.toMatch(settings)
    expect(renderBootstrap({ ...given, allowanceBurst: 5 })).toMatch(settings)
  })

  test('has the titles of the problems that the pods return', () => {
    const found = [...text.matchAll(/type: "https:\/\/cur\.tl\/problems\/(.*)"\n +title: (.*)\n/g)]
    const titles = found.flatMap(([, name = '', title = '']) =>
      Object.hasOwn(problemTypes, name) ? [[name, title]] : [],
    )
    expect(titles.length).toBeGreaterThan(6)
    const expected = Object.entries(problemTypes).map(([name, { title }]) => [name, title])
    for (const title of titles) expect(expected).toContainEqual(title)
  })

  test('routes exactly the paths that the pods parse as a code to the redirect pods', () => {
    const pattern = new RegExp(
      `^${/safe_regex: &code \{regex: '(\/.*)'\}/.exec(text)?.[1] ?? '^'}$`,
    )
    const tokens = fc.constantFrom(
      ...Array.from('aZ09_-.~%/:@[`{'),
      '%61',
      '%5f',
      '%5F',
      '%2D',
      '%2f',
      '%zz',
    )
    const paths = fc.array(tokens, { maxLength: 12 }).map((found) => `/${found.join('')}`)
    fc.assert(
      fc.property(paths, (path) => {
        expect([path, pattern.test(path)]).toEqual([path, parseCodePath(path) !== undefined])
      }),
      { numRuns: 2000 },
    )
  })

  test('limits a client while the limiter is unavailable no earlier than the limiter would', () => {
    const rules = readFileSync(new URL('rate-limits.yaml', import.meta.url), 'utf8')
    const { descriptors } = parse(rules) as { descriptors: Level[] }
    const find = (route: string) => descriptors.find(({ value }) => value === route)
    const perClient = (route: string) =>
      find(route)?.descriptors?.find(({ key }) => key === 'client')?.rate_limit
    expect(perClient('create')).toMatchObject({
      burst: edgeDefaults.createBurst,
      requests_per_unit: edgeDefaults.createPerSecond,
    })
    expect(perClient('redirect')).toMatchObject({
      burst: edgeDefaults.redirectBurst,
      requests_per_unit: edgeDefaults.redirectPerSecond,
    })
    expect(find('create')?.rate_limit).toMatchObject({
      burst: edgeDefaults.createTotalBurst,
      requests_per_unit: edgeDefaults.createTotalPerSecond,
    })
    expect(edgeDefaults.ceilingPerSecond).toBeGreaterThan(2 * edgeDefaults.redirectBurst)
  })
})

interface Level {
  readonly key: string
  readonly value?: string
  readonly rate_limit?: { readonly burst: number; readonly requests_per_unit: number }
  readonly descriptors?: Level[]
}
