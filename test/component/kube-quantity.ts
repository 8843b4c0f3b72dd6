// Adds up what pods request, in CPUs and bytes, as the scheduler does: what an init container
// requests is free when the others start; a sidecar container keeps its share.
import { containersOf, type KubeObject, podsOf } from './chart-render.ts'

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

/** The number that a quantity such as `100m` or `1Gi` stands for. Throws where it is none. */
function parseQuantity(text: string | number): number {
  const [, digits = '', unit = ''] = /^([\d.]+)([a-zA-Z]*)$/.exec(String(text)) ?? []
  const factor = units[unit]
  if (digits === '' || factor === undefined) throw new Error(`${text} is no quantity`)
  return Number(digits) * factor
}

/** What all pods of these objects ask for together. */
export function amountsOf(objects: readonly KubeObject[]): { cpu: number; memoryBytes: number } {
  const pods = podsOf(objects)
  const sumOf = (what: string) =>
    pods.reduce((sum, pod) => {
      const amounts = containersOf(pod).map(({ name, restartPolicy, resources }) => ({
        isFirst:
          restartPolicy !== 'Always' &&
          (pod.spec.initContainers ?? []).some((one) => one.name === name),
        amount: parseQuantity(resources?.requests?.[what] ?? 0),
      }))
      const first = amounts.filter(({ isFirst }) => isFirst).map(({ amount }) => amount)
      const rest = amounts.filter(({ isFirst }) => !isFirst)
      const together = rest.reduce((all, { amount }) => all + amount, 0)
      return sum + pod.replicas * Math.max(together, ...first)
    }, 0)
  return { cpu: sumOf('cpu'), memoryBytes: sumOf('memory') }
}
