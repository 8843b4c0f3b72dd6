// Objects of the API that tests make by hand: pods of our image that keep to the restricted kind,
// and Services in front of them. Starts nothing.

/** A pod named and labelled `name`, of our image unless it says another. */
export function restrictedPod(
  name: string,
  given: {
    readonly image?: string
    readonly command?: readonly string[]
    readonly args?: readonly string[]
    readonly env?: Readonly<Record<string, string>>
    /** Folders that it may write to; they are empty at first. */
    readonly writable?: readonly string[]
    readonly port?: number
  },
) {
  const { image = 'localhost/curtail:test', command, args, env = {}, writable = [] } = given
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 10,
      securityContext: {
        runAsNonRoot: true,
        fsGroup: 65_532,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name,
          image,
          imagePullPolicy: 'Never',
          ...(command && { command }),
          ...(args && { args }),
          env: Object.entries(env).map(([key, value]) => ({ name: key, value })),
          ...(command === undefined && {
            readinessProbe: { httpGet: { path: '/', port: given.port ?? 8080 }, periodSeconds: 1 },
          }),
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          volumeMounts: writable.map((mountPath, i) => ({ name: `folder${i}`, mountPath })),
        },
      ],
      volumes: writable.map((_, i) => ({ name: `folder${i}`, emptyDir: {} })),
    },
  }
}

/** A Service in front of the pods labelled `name`. */
export function serviceOf(name: string, port: { port: number; targetPort: number }) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { selector: { app: name }, ports: [port] },
  }
}
