// usage: enforce-policies.ts PKI_FOLDER, in the network of the test cluster
// Enforces NetworkPolicies with the node's iptables, because a bridge network does not. Lists the
// objects from the API server's cache twice a second, and replaces all chains atomically when they
// have changed. Runs until it is killed.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  CHAIN_PREFIX,
  type Chains,
  ENTRY_CHAIN,
  type Namespace,
  planChains,
  type Pod,
  type Policy,
} from './network-policy.ts'

const POLL_MS = 500
const REQUEST_MS_MAX = 5000
const RUN_MS_MAX = 20_000
const HOOKS = ['FORWARD', 'INPUT']

const [pki = ''] = process.argv.slice(2)
const read = (name: string) => readFileSync(join(pki, name))
const user = { ca: read('ca.crt'), cert: read('admin.crt'), key: read('admin.key') }
const agent = new Agent({ keepAlive: true, ...user })

/** Lists every object at `path`, from the API server's cache. */
function list<T>(path: string): Promise<readonly T[]> {
  const url = `https://127.0.0.1:6443${path}?resourceVersion=0`
  const signal = AbortSignal.timeout(REQUEST_MS_MAX)
  return new Promise((resolve, reject) => {
    const req = request(url, { agent, signal }, (res) => {
      const chunks: Buffer[] = []
      res.on('data', (chunk: Buffer) => chunks.push(chunk))
      res.on('error', reject)
      res.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        if (res.statusCode === 200) resolve((JSON.parse(text) as { items: T[] }).items)
        else reject(new Error(`${path}: ${String(res.statusCode)}`))
      })
    })
    req.on('error', reject)
    req.end()
  })
}

function run(command: string, args: readonly string[], input = ''): string {
  const options = { input, encoding: 'utf8', timeout: RUN_MS_MAX } as const
  const { status, stdout, stderr } = spawnSync(command, args, options)
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
  return stdout
}

/** The input of iptables-restore: creates the wanted chains and deletes the stale ones. */
function renderRestore(chains: Chains): string {
  const present = run('iptables-save', ['-t', 'filter']).matchAll(/^:(\S+)/gm)
  const ours = [...present]
    .map(([, name = '']) => name)
    .filter((name) => name.startsWith(CHAIN_PREFIX))
  const stale = ours.filter((name) => !chains.has(name))
  const rules = [...chains].flatMap(([name, all]) => all.map((rule) => `-A ${name} ${rule}`))
  const declared = [...chains.keys(), ...stale].map((name) => `:${name} - [0:0]`)
  const deletions = stale.map((name) => `-X ${name}`)
  return ['*filter', ...declared, ...rules, ...deletions, 'COMMIT', ''].join('\n')
}

/** Applies the chains that the objects require, if they changed; resolves to the applied chains. */
async function enforce(applied: string): Promise<string> {
  const [pods, namespaces, policies] = await Promise.all([
    list<Pod>('/api/v1/pods'),
    list<Namespace>('/api/v1/namespaces'),
    list<Policy>('/apis/networking.k8s.io/v1/networkpolicies'),
  ])
  const chains = planChains({ pods, namespaces, policies })
  const wanted = JSON.stringify([...chains])
  if (wanted === applied) return applied
  run('iptables-restore', ['--noflush'], renderRestore(chains))
  for (const hook of HOOKS) {
    const jump = [hook, '-j', ENTRY_CHAIN]
    const isPresent = spawnSync('iptables', ['-C', ...jump], { timeout: RUN_MS_MAX }).status === 0
    if (!isPresent) run('iptables', ['-I', hook, '1', '-j', ENTRY_CHAIN])
  }
  process.stdout.write(`${new Date().toISOString()} ${chains.size} chains\n`)
  return wanted
}

let applied = ''
for (;;) {
  try {
    applied = await enforce(applied)
  } catch (error) {
    process.stderr.write(`${new Date().toISOString()} ${String(error)}\n`)
  }
  await sleep(POLL_MS)
}
