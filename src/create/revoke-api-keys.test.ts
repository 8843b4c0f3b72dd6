// Which creator a revoked key has, in lists in which several lines have the same name or key.
import { expect, test } from '@jest/globals'
import { addApiKey, generateApiKey, listApiKeys, revokeApiKeys } from './change-api-keys.ts'

const [first, second, third] = [generateApiKey(), generateApiKey(), generateApiKey()]

/** The line of a key. */
function lineOf(name: string, key: string, creatorId: bigint): string {
  const added = { name, key, creatorId, expiresAt: undefined }
  const contents = addApiKey([{ name: 'keys', content: '', bytesMax: 1000 }], added)
  if (typeof contents === 'string') throw new Error(contents)
  return contents.get('keys') ?? ''
}

/** The state of each line, and the creator of each name that is revoked with `shop`. */
function revoke(...lines: readonly string[]) {
  const documents = [{ name: 'keys', content: lines.join(''), bytesMax: 10_000 }]
  const { creatorIds } = revokeApiKeys(documents, ['shop'])
  return {
    states: listApiKeys(documents, 0).keys.map(({ state }) => state),
    creatorIds: Object.fromEntries(creatorIds),
  }
}

test('is that of the line that the service uses, whatever lines are before and after it', () => {
  const lines = [
    lineOf('blog', first, 1n),
    lineOf('shop', first, 2n), // ignored: the key of `blog`
    lineOf('shop', second, 3n),
    lineOf('shop', third, 4n), // ignored: the name of the line before it
  ]
  expect(revoke(...lines)).toEqual({
    states: ['active', 'ignored', 'active', 'ignored'],
    creatorIds: { blog: '1', shop: '3' },
  })
})

test('is that of the first line of the name if the service uses none', () => {
  const lines = [
    lineOf('blog', first, 1n),
    lineOf('docs', second, 2n),
    lineOf('shop', first, 3n),
    lineOf('shop', second, 4n),
  ]
  expect(revoke(...lines)).toEqual({
    states: ['active', 'active', 'ignored', 'ignored'],
    creatorIds: { blog: '1', docs: '2', shop: '3' },
  })
})

test('is returned for the revoked keys only', () => {
  const lines = [lineOf('blog', first, 1n), lineOf('shop', second, 2n), '{"name":"shop"}\n']
  expect(revoke(...lines).creatorIds).toEqual({ shop: '2' })
})

test('a key is added to a document with space, and the others do not change', () => {
  const documents = [
    { name: 'a', content: lineOf('blog', first, 1n), bytesMax: 10 },
    { name: 'b', content: '# keys\n', bytesMax: 1000 },
  ]
  const added = { name: 'shop', key: second, creatorId: 2n, expiresAt: undefined }
  const contents = addApiKey(documents, added)
  if (typeof contents === 'string') throw new Error(contents)
  expect([...contents]).toEqual([['b', `# keys\n${lineOf('shop', second, 2n)}`]])
  const copy = { ...added, key: first } // the service uses the earlier line with this key
  expect(addApiKey(documents, copy)).toBeInstanceOf(Map)
})
