// A client of the gRPC health service, like Envoy and load balancers: Check and Watch.
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
  /** The received statuses, in order. */
  readonly statuses: readonly string[]
  readonly completed: Promise<grpc.StatusObject>
  readonly cancel: () => void
}

/** A client, which the test must close. */
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
      stream.on('error', () => undefined) // the status reports it as well
      const completed = new Promise<grpc.StatusObject>((resolve) => stream.once('status', resolve))
      return { statuses, completed, cancel: stream.cancel.bind(stream) }
    },
    close: () => {
      client.close()
    },
  }
}
