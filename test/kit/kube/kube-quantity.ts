// Sums the resource requests of pods, in CPUs and bytes, like the scheduler: init containers
// release their requests before the other containers start; sidecar containers do not.
import { containersOf, type KubeObject, podsOf } from '../chart/chart-render.ts'

const units: Readonly<Record<string, number>> = {
  '': 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 1024,
  Mi: 1024 ** 2,
  Gi: 1024 ** 3,
}

/** The value of a quantity such as `100m` or `1Gi`. Throws if the string is not a quantity. */
function parseQuantity(text: string | number): number {
  const [, digits = '', unit = ''] = /^([\d.]+)([a-zA-Z]*)$/.exec(String(text)) ?? []
  const factor = units[unit]
  if (digits === '' || factor === undefined) throw new Error(`${text} is not a quantity`)
  return Number(digits) * factor
}

/** The sum of the requests of all pods of these objects. */
export function sumRequests(objects: readonly KubeObject[]): { cpu: number; memoryBytes: number } {
  const pods = podsOf(objects)
  const sumOf = (resource: string) =>
    pods.reduce((sum, pod) => {
      const amounts = containersOf(pod).map(({ name, restartPolicy, resources }) => ({
        isInit:
          restartPolicy !== 'Always' &&
          (pod.spec.initContainers ?? []).some((one) => one.name === name),
        amount: parseQuantity(resources?.requests?.[resource] ?? 0),
      }))
      const init = amounts.filter(({ isInit }) => isInit).map(({ amount }) => amount)
      const regular = amounts.filter(({ isInit }) => !isInit)
      const concurrent = regular.reduce((all, { amount }) => all + amount, 0)
      return sum + pod.replicas * Math.max(concurrent, ...init)
    }, 0)
  return { cpu: sumOf('cpu'), memoryBytes: sumOf('memory') }
}
