// A client of the gRPC health service, like Envoy and load balancers: checks once, or watches.
import * as grpc from '@grpc/grpc-js'
import { service as healthService } from 'grpc-health-check'

const Health = grpc.makeGenericClientConstructor(healthService, 'Health')
interface HealthResponse {
  readonly status: string
}
type Check = (
  request: object,
  done: (error: grpc.ServiceError | null, response?: HealthResponse) => void,
) => void

/** A watch and the statuses that it received. */
interface HealthWatch {
  /** Each status, in order of receipt. */
  readonly statuses: readonly string[]
  readonly ended: Promise<grpc.StatusObject>
  readonly cancel: () => void
}

/** A client; the test must close it. */
export interface HealthClient {
  /** Resolves with the status of a service; rejects with grpc.ServiceError. */
  readonly check: (service: string) => Promise<string>
  readonly watch: (service: string) => HealthWatch
  readonly close: () => void
}

/** Creates a client of the listener at `port` of loopback. */
export function createHealthClient(port: number): HealthClient {
  const client = new Health(`127.0.0.1:${port}`, grpc.credentials.createInsecure())
  return {
    check: (service) =>
      new Promise<string>((resolve, reject) => {
        const call = (client['check'] as Check).bind(client)
        call({ service }, (error, response) => {
          if (error === null) resolve(response?.status ?? '')
          else reject(error)
        })
      }),
    watch(service) {
      const start = client['watch'] as (
        request: object,
      ) => grpc.ClientReadableStream<HealthResponse>
      const stream = start.call(client, { service })
      const statuses: string[] = []
      stream.on('data', ({ status }: HealthResponse) => statuses.push(status))
      stream.on('error', () => undefined) // the status reports it too
      const ended = new Promise<grpc.StatusObject>((resolve) => stream.once('status', resolve))
      return { statuses, ended, cancel: stream.cancel.bind(stream) }
    },
    close: () => {
      client.close()
    },
  }
}
