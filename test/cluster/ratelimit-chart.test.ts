// The command of docs/drop-in.md that installs the rate limiter with Helm, and those of the chart's
// notes, as printed: a plain Envoy with the configuration of the document is limited. Only image
// names and times differ.
import { mkdtemp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { commandsOf, valuesOf } from '../kit/chart/notes.ts'
import { waitFor } from '../kit/wait-for.ts'
import {
  applyObjects,
  createNamespace,
  deleteNamespace,
  kubectl,
  mustRun,
  pathWithHelm,
} from './cluster.ts'
import { restrictedPod } from './pods.ts'
import { createPortForwards } from './port-forward.ts'
import { runInOrder } from './run-in-order.ts'

const NAMESPACE = 'limits'
const SETUP_MS_MAX = 5 * 60_000
const TEST_MS_MAX = 180_000
/** The name of the image in the document. */
const IMAGE = 'registry.example.com/curtail'
/** The test images, and a short time until a pod is available. */
const ownValues =
  'localhost/curtail --set image.tag=test,dnsSeconds=1' +
  ',counters.bundled.image.repository=localhost/redis,counters.bundled.image.tag=test'

const portForwards = createPortForwards()
let folder: string
let page: string
/** The output of the installation, which includes the notes. */
let output: string

function blocks(language: string): readonly string[] {
  const found = page.matchAll(RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))
  return [...found].map(([, text = '']) => text)
}

beforeAll(async () => {
  page = await readFile('docs/drop-in.md', 'utf8')
  folder = await mkdtemp(join(tmpdir(), 'curtail-limits-'))
  await mkdir(join(folder, 'config'))
  await writeFile(join(folder, 'config', 'rules.yaml'), blocks('yaml')[0] ?? '')
  await createNamespace(NAMESPACE)
  const install = blocks('sh').find((block) => block.startsWith('helm install ')) ?? ''
  expect(install).toContain(IMAGE)
  const command = install.replace(IMAGE, ownValues).replace('/tmp/limits', folder)
  const path = await pathWithHelm()
  output = await mustRun('sh', ['-c', `set -e\nexport PATH=${path}\n${command}`])
}, SETUP_MS_MAX)

afterAll(async () => {
  await portForwards.stop()
  await deleteNamespace(NAMESPACE)
  await rm(folder, { recursive: true })
}, SETUP_MS_MAX)

/** The address of the rate limiter in the document. */
function documentedAddress(): string {
  const [address = ''] = /[a-z-]+\.limits\.svc\.cluster\.local/.exec(page) ?? []
  return address
}

test(
  'every command of the notes succeeds as printed; the pods have logged no warning',
  async () => {
    expect(valuesOf(output)).toEqual([`${documentedAddress()}:8081`])
    const { outputOf, count } = await runInOrder(commandsOf(output))
    expect(count).toBe(5)
    expect(outputOf('rollout status')).toContain('successfully rolled out')
    expect(outputOf('/rlconfig')).toMatch(/requests_per_unit[:=] ?3\b/)
    expect(outputOf('describe pods')).toMatch(/^Name: +limits-curtail-ratelimit-/m)
    const lines = outputOf('component=ratelimit').trim().split('\n')
    expect(lines.filter((line) => !line.startsWith('{"level":"info",'))).toEqual([])
    expect(lines.filter((line) => line.includes('"msg":"ready"'))).toHaveLength(2)
  },
  TEST_MS_MAX,
)

/** Starts an Envoy with the configuration of the document; its own admin API is the service. */
async function startEnvoy(): Promise<void> {
  const ofLimiter = 'address: 127.0.0.1, port_value: 8081'
  const [, config = ''] = blocks('yaml')
  expect(config).toContain(ofLimiter)
  const bootstrap = {
    ...(parse(
      config.replace(ofLimiter, `address: ${documentedAddress()}, port_value: 8081`),
    ) as object),
    admin: { address: { socket_address: { address: '127.0.0.1', port_value: 9000 } } },
  }
  const args = ['--disable-hot-restart', '--config-yaml', JSON.stringify(bootstrap)]
  const command = ['/usr/local/bin/envoy', ...args]
  const pod = restrictedPod('envoy', { image: 'localhost/envoy:test', command })
  await applyObjects({ ...pod, metadata: { ...pod.metadata, namespace: NAMESPACE } })
  const wait = ['--for=condition=Ready', '--timeout=60s']
  await kubectl('wait', 'pod/envoy', '--namespace', NAMESPACE, ...wait)
  await portForwards.start(`kubectl -n ${NAMESPACE} port-forward pod/envoy 8000:8000 &`)
}

test(
  'a plain Envoy admits requests up to the limit of the rules, and denies the others',
  async () => {
    await startEnvoy()
    const curl =
      blocks('sh')[0]
        ?.split('\n')
        .find((line) => line.startsWith('curl ')) ?? ''
    let admitted = 0
    let denied = ''
    // Envoy admits a request if the limiter does not decide within Envoy's timeout of 20 ms.
    await waitFor('a denial', async () => {
      const response = await mustRun('sh', ['-ec', curl])
      if (response.startsWith('HTTP/1.1 200 ')) admitted++
      if (!response.startsWith('HTTP/1.1 429 ')) return false
      denied = response
      return true
    })
    expect(admitted).toBeGreaterThanOrEqual(3)
    expect(denied).toMatch(/^x-ratelimit-limit: 3\r$[^]*"rule":/im)
  },
  TEST_MS_MAX,
)
