// How many conditional writes a node of Cassandra has done, by its own count: asked by JMX, with
// the tool that Cassandra brings.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { findCassandraJars } from '../../test/dependencies/cassandra-jars.ts'
import { findJava } from '../../test/dependencies/java.ts'

/** Where the node is to listen, on this machine alone. */
export const JMX_PORT = 7199

const BEAN = 'org.apache.cassandra.metrics:type=ClientRequest,scope=CASWrite,name=Latency'
const JMX_MS_MAX = 30_000
const run = promisify(execFile)

/** The count since the node started. Throws what the tool said. */
export async function countConditionalWrites(): Promise<number> {
  const { path } = await findJava()
  const tool = ['-cp', await findCassandraJars(), 'org.gridkit.jvmtool.SJK']
  const query = ['mx', '-s', `127.0.0.1:${JMX_PORT}`, '-b', BEAN, '-mg', '-f', 'Count']
  const { stdout, stderr } = await run(path, [...tool, ...query], { timeout: JMX_MS_MAX })
  const count = /^(\d+)\s*$/m.exec(stdout)?.[1]
  if (count === undefined) throw new Error(`JMX gave no count: ${stdout}${stderr}`)
  return Number(count)
}
