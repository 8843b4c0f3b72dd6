// How the parameters of an operation are sent to the writer thread: only their values, in an order
// derived from its SQL. Sending and binding names would cost more than the insert itself.
import { type Operation, type OperationName, operations } from './operations.ts'

/** A parameter value of a statement. */
export type Parameter = string | number | bigint | null | Uint8Array

/** One write as sent to the thread: the operation and the values of its parameters. */
export type Write = readonly [name: OperationName, ...values: Parameter[]]

/** The parameter names of an operation, in the order in which their values are sent. */
function namesOf({ write = '', read = '' }: Operation): string[] {
  const found = [...`${write} ${read}`.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  return [...new Set(found)]
}

const namesByOperation = new Map(
  Object.entries<Operation>(operations).map(([name, operation]) => [name, namesOf(operation)]),
)

/** The write of an operation; omits parameters that it does not name. */
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

/** A statement of an operation with numbered parameters, and how many values it takes. */
export function withNumberedParameters(
  operation: Operation,
  sql: string,
): { sql: string; values: number } {
  const names = namesOf(operation)
  let values = 0
  const numberedSql = sql.replace(/:(\w+)/g, (_, name: string) => {
    const number = names.indexOf(name) + 1
    values = Math.max(values, number)
    return `?${number}`
  })
  return { sql: numberedSql, values }
}
