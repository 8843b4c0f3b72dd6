// A client of gRPC health as Envoy and load balancers are: asks once, or watches.
import * as grpc from '@grpc/grpc-js'
import { service as healthService } from 'grpc-health-check'

const Health = grpc.makeGenericClientConstructor(healthService, 'Health')
interface Told {
  readonly status: string
}
type Check = (asked: object, done: (error: grpc.ServiceError | null, told?: Told) => void) => void

/** What a watch was told. */
interface HealthWatch {
  /** Each status, in its order. */
  readonly seen: readonly string[]
  readonly ended: Promise<grpc.StatusObject>
  readonly cancel: () => void
}

/** A client; to be closed. */
export interface HealthClient {
  /** Resolves with the status of a service; rejects with grpc.ServiceError. */
  readonly check: (service: string) => Promise<string>
  readonly watch: (service: string) => HealthWatch
  readonly close: () => void
}

/** Makes a client of the listener at `port` of loopback. */
export function createHealthClient(port: number): HealthClient {
  const client = new Health(`127.0.0.1:${port}`, grpc.credentials.createInsecure())
  return {
    check: (service) =>
      new Promise<string>((resolve, reject) => {
        const call = (client['check'] as Check).bind(client)
        call({ service }, (error, told) => {
          if (error === null) resolve(told?.status ?? '')
          else reject(error)
        })
      }),
    watch(service) {
      const begin = client['watch'] as (asked: object) => grpc.ClientReadableStream<Told>
      const stream = begin.call(client, { service })
      const seen: string[] = []
      stream.on('data', ({ status }: Told) => seen.push(status))
      stream.on('error', () => undefined) // the status tells it too
      const ended = new Promise<grpc.StatusObject>((resolve) => stream.once('status', resolve))
      return { seen, ended, cancel: stream.cancel.bind(stream) }
    },
    close: () => {
      client.close()
    },
  }
}
