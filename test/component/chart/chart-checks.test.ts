// The chart rejects values that Kubernetes or a pod would reject after the install, and renders no
// object twice.
import { describe, expect, test } from '@jest/globals'
import { helmMajors } from '../../dependencies/helm.ts'
import { renderChart, tryRender } from '../../kit/chart/chart-render.ts'
import { unusual, wrong, wrongLines } from '../../kit/chart/wrong-values.ts'

const external = { mode: 'external', external: { contactPoints: ['db'] } }
const linesOf = (error: string) => error.split('\n').filter((line) => line.startsWith('- '))

describe.each(helmMajors)('Helm %d', (major) => {
  test('rejects wrong values, each with what is allowed', async () => {
    const { exitCode, error } = await tryRender({ major, values: wrong })
    expect([exitCode === 0, linesOf(error).sort()]).toEqual([false, wrongLines])
  }, 30_000)
})

test.each(unusual)('the unusual values of $baseUrl render', async (values) => {
  const { exitCode, error } = await tryRender({ major: 4, values })
  expect([exitCode, error]).toEqual([0, ''])
})

test('no object is rendered twice although namespaces occur in several values', async () => {
  const objects = await renderChart({
    major: 4,
    values: {
      namespaceOverride: 'shop',
      cassandra: external,
      controller: { watchNamespaces: ['store', 'one', 'two'] },
      ratelimit: {
        domains: ['a', 'b'].map((domain) => ({ domain, namespaces: ['one', 'shop', 'one'] })),
      },
    },
  })
  const keys = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace} ${metadata.name}`)
  expect(keys.filter((key, at) => keys.indexOf(key) !== at)).toEqual([])
  const roles = keys.filter((key) => key.startsWith('Role '))
  expect(roles.map((key) => key.split(' ')[1]).sort()).toEqual(['one', 'shop', 'store', 'two'])
})

test.each([
  [['one', 'one'], 'items at 0 and 1 are equal'],
  [['shop'], 'must not name shop: the namespace of the release is always watched'],
])('watching %j is an error', async (watchNamespaces, sentence) => {
  const values = { namespaceOverride: 'shop', cassandra: external, controller: { watchNamespaces } }
  const { exitCode, error } = await tryRender({ major: 4, values })
  expect([exitCode === 0, error]).toEqual([false, expect.stringContaining(sentence)])
})
