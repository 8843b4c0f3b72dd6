// openDependencies() closes every dependency, also if opening a later one fails.
import { expect, test } from '@jest/globals'
import { openDependencies } from './open-dependencies.ts'

test('close() closes the dependencies once, the last one first', async () => {
  const closed: string[] = []
  const opened = await openDependencies((onClose) => {
    for (const name of ['server', 'client']) onClose(() => closed.push(name))
    return Promise.resolve({ port: 1 })
  })
  expect([opened.port, closed]).toEqual([1, []])
  await opened.close()
  await opened.close()
  expect(closed).toEqual(['client', 'server'])
})

test('openDependencies() closes the opened dependencies if another one fails to open', async () => {
  const closed: string[] = []
  const opening = openDependencies((onClose) => {
    onClose(() => closed.push('server'))
    return Promise.reject(new Error('no client'))
  })
  await expect(opening).rejects.toThrow('no client')
  expect(closed).toEqual(['server'])
})
