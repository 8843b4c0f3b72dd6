// The commands that `npm run test:cluster -- --stay` prints: Helm accepts them and renders both
// charts, with images of the cluster only.
import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import { renderDescription } from '../../cluster/describe-cluster.ts'
import { findHelm } from '../../dependencies/helm.ts'
import { containersOf, parseObjects, podsOf } from '../../kit/chart/chart-render.ts'

const run = promisify(execFile)
const BOUNDS = { timeout: 20_000, maxBuffer: 32 * 1024 * 1024 }
const images = ['cassandra', 'curtail', 'envoy', 'redis'].map((name) => `localhost/${name}:test`)

test('the printed commands open a shell, and render both charts with these images', async () => {
  const cluster = { pid: 42, kubeconfig: '/tmp/kubeconfig', logs: '/tmp/logs' }
  const path = dirname(await findHelm(4))
  const description = renderDescription(cluster, { images, path })
  for (const image of images) expect(description).toContain(`\n  ${image}\n`)
  const commands = description.match(/^ {2}(?:KUBECONFIG=|helm )(?:.*\\\n)*.*$/gm) ?? []
  const [shell = '', ...installs] = commands
  // What `bash` is in the printed command, here only prints its variables and arguments.
  const line = shell.replace(/nsenter (.*) -- bash$/, 'sh -c \'echo "$KUBECONFIG $@"\' sh $1')
  const { stdout } = await run('bash', ['-c', line], BOUNDS)
  expect(stdout).toBe('/tmp/kubeconfig --target 42 --net\n')

  const env = { ...process.env, PATH: `${path}:${process.env['PATH'] ?? ''}` }
  const renderings = installs.map(async (command) => {
    const template = command.replace(/^ {2}helm (?:upgrade --install|install) /, 'helm template ')
    return parseObjects((await run('bash', ['-c', template], { ...BOUNDS, env })).stdout)
  })
  const [definitions = [], objects = []] = await Promise.all(renderings)
  expect(definitions.map(({ kind }) => kind)).toContain('CustomResourceDefinition')
  expect(
    new Set(
      podsOf(objects)
        .flatMap(containersOf)
        .map(({ image }) => image),
    ),
  ).toEqual(new Set(images))
})
