{{/* Fields that all pods share: metadata, security, scheduling, and the lists that operators extend. */}}

{{/* (list root pod): podDefaults, overridden by a workload's own `pod`, as YAML. */}}
{{- define "curtail.podValues" -}}
{{- $root := index . 0 -}}
{{- mergeOverwrite (deepCopy $root.Values.podDefaults) (deepCopy (index . 1)) | toYaml -}}
{{- end -}}

{{/* (list root component pod [checksums]): metadata of a pod template. */}}
{{- define "curtail.podMetadata" -}}
{{- $root := index . 0 -}}
{{- $pod := include "curtail.podValues" (list $root (index . 2)) | fromYaml -}}
{{- $annotations := $pod.annotations -}}
{{- if gt (len .) 3 }}{{ $annotations = mergeOverwrite (deepCopy $annotations) (index . 3) }}{{ end -}}
labels:
  {{- include "curtail.selectorLabels" (list $root (index . 1)) | nindent 2 }}
  app.kubernetes.io/part-of: curtail
  {{- with mergeOverwrite (deepCopy $root.Values.commonLabels) $pod.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* (list root component pod user [mountsToken]): the first fields of a pod's specification. */}}
{{- define "curtail.podSpec" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $user := index . 3 -}}
{{- $pod := include "curtail.podValues" (list $root (index . 2)) | fromYaml -}}
serviceAccountName: {{ include "curtail.fullname" $root }}-{{ $component }}
automountServiceAccountToken: {{ gt (len .) 4 }}
enableServiceLinks: false
{{- with concat $root.Values.global.imagePullSecrets $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ $user }}
  runAsGroup: {{ $user }}
  fsGroup: {{ $user }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with $pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- if $pod.topologySpreadConstraints }}
  {{- toYaml $pod.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "curtail.selectorLabels" (list $root $component) | nindent 8 }}
  {{- end }}
  {{- end }}
{{- with $pod.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $pod.runtimeClassName }}
runtimeClassName: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The security context of every container. */}}
{{- define "curtail.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* (list root pod "extraEnv"): a list that operators extend, as YAML; nothing if it is empty. */}}
{{- define "curtail.extra" -}}
{{- $pod := include "curtail.podValues" (list (index . 0) (index . 1)) | fromYaml -}}
{{- with index $pod (index . 2) -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{/*
(list heap [arguments]): the command of a container of our image, with its heap limit in MiB. With a
small heap the young generation is smaller too: the image's 24 MiB are in addition to the heap. The
limiter has 24 MiB even if NODE_OPTIONS is replaced: its garbage fills any young generation, and 24
MiB cost no CPU time.
*/}}
{{- define "curtail.command" -}}
{{- $heap := index . 0 -}}
command:
  - /nodejs/bin/node
  - --max-old-space-size={{ $heap | int }}
  {{- if le (int $heap) 128 }}
  - --max-semi-space-size=4
  {{- else if has "ratelimit" . }}
  - --max-semi-space-size=8
  {{- end }}
  - /app/main.js
  {{- range rest . }}
  - {{ . | quote }}
  {{- end }}
{{- end -}}

{{/* (list workload): probes of a role that serves its admin port. */}}
{{- define "curtail.probes" -}}
startupProbe:
  httpGet: { path: /livez, port: metrics }
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /livez, port: metrics }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /readyz, port: metrics }
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 3
{{- end -}}
