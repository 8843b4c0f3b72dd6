// What a contract's tests use is closed again, whatever became of its opening.
import { expect, test } from '@jest/globals'
import { openParts } from './open-parts.ts'

test('openParts() closes from the last to the first, once', async () => {
  const closed: string[] = []
  const opened = await openParts((onClose) => {
    for (const part of ['server', 'client']) onClose(() => closed.push(part))
    return Promise.resolve({ port: 1 })
  })
  expect([opened.port, closed]).toEqual([1, []])
  await opened.close()
  await opened.close()
  expect(closed).toEqual(['client', 'server'])
})

test('openParts() closes what was opened already where the rest does not open', async () => {
  const closed: string[] = []
  const opening = openParts((onClose) => {
    onClose(() => closed.push('server'))
    return Promise.reject(new Error('no client'))
  })
  await expect(opening).rejects.toThrow('no client')
  expect(closed).toEqual(['server'])
})
