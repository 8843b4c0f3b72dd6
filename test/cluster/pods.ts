// Manifests for tests: pods of our image that meet the restricted Pod Security Standard, and
// Services for them. Pure functions.

/** A pod named `name` with the label `app: name`; runs our image by default. */
export function restrictedPod(
  name: string,
  { image = 'localhost/curtail:test', command }: { image?: string; command: readonly string[] },
) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 10,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name,
          image,
          imagePullPolicy: 'Never',
          command,
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
    },
  }
}

/** A Service named `name` for the pods with the label `app: name`. */
export function serviceOf(name: string, port: { port: number; targetPort: number }) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { selector: { app: name }, ports: [port] },
  }
}
