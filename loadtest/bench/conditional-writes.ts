// Reads a Cassandra node's count of conditional writes over JMX, with the tool that Cassandra
// includes.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { findCassandraJars } from '../../test/dependencies/cassandra-jars.ts'
import { findJava } from '../../test/dependencies/java.ts'

/** The node's JMX port, on loopback only. */
export const JMX_PORT = 7199

const BEAN = 'org.apache.cassandra.metrics:type=ClientRequest,scope=CASWrite,name=Latency'
const JMX_MS_MAX = 30_000
const run = promisify(execFile)

/** The count since the node started. Throws an error with the output of the tool. */
export async function countConditionalWrites(): Promise<number> {
  const { path } = await findJava()
  const tool = ['-cp', await findCassandraJars(), 'org.gridkit.jvmtool.SJK']
  const query = ['mx', '-s', `127.0.0.1:${JMX_PORT}`, '-b', BEAN, '-mg', '-f', 'Count']
  const { stdout, stderr } = await run(path, [...tool, ...query], { timeout: JMX_MS_MAX })
  const count = /^(\d+)\s*$/m.exec(stdout)?.[1]
  if (count === undefined) throw new Error(`Cannot read the count over JMX: ${stdout}${stderr}`)
  return Number(count)
}
