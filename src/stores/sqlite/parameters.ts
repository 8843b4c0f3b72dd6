// How the parameters of an operation travel to the writing thread: their values alone, in an order
// that follows from its SQL. Names would cost more, to send and to bind, than the insert itself.
import { type Operation, type OperationName, operations } from './operations.ts'

/** A value that a statement takes. */
export type Parameter = string | number | bigint | null | Uint8Array

/** One write as it is sent: its operation and the values of its parameters. */
export type Write = readonly [name: OperationName, ...values: Parameter[]]

/** Names of an operation's parameters, in the order in which their values are sent. */
function namesOf({ write = '', read = '' }: Operation): string[] {
  const found = [...`${write} ${read}`.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  return [...new Set(found)]
}

const namesByOperation = new Map(
  Object.entries<Operation>(operations).map(([name, operation]) => [name, namesOf(operation)]),
)

/** The write of an operation with these parameters; others than it names are left out. */
export function writeOf(
  name: OperationName,
  parameters: Readonly<Record<string, Parameter>>,
): Write {
  const write: [OperationName, ...Parameter[]] = [name]
  for (const parameter of namesByOperation.get(name) ?? []) {
    const value = parameters[parameter]
    if (value === undefined) throw new Error(`${name} needs the parameter ${parameter}`)
    write.push(value)
  }
  return write
}

/** A statement of an operation with its parameters by number, and how many values it takes. */
export function numbered(operation: Operation, sql: string): { sql: string; values: number } {
  const names = namesOf(operation)
  let values = 0
  const text = sql.replace(/:(\w+)/g, (_, name: string) => {
    const number = names.indexOf(name) + 1
    values = Math.max(values, number)
    return `?${number}`
  })
  return { sql: text, values }
}
