{{/* Fields that all pods share: metadata, security, scheduling, and the lists that operators extend. */}}

{{/*
(list root pod): podDefaults, overridden by a workload's own `pod`, as YAML. Values of earlier releases
have no settings that were added since: those that are not empty have their default here too. Fields
that exclude one another are not merged: a strategy, the handler of a probe, and a security profile of
the workload replace the default.
*/}}
{{- define "curtail.podValues" -}}
{{- $root := index . 0 -}}
{{- $added := dict "revisionHistoryLimit" 3 "serviceAccount" (dict "create" true) -}}
{{- $defaults := deepCopy $root.Values.podDefaults -}}
{{- $pod := index . 1 -}}
{{- if $pod.strategy }}{{ $defaults = omit $defaults "strategy" }}{{ end -}}
{{- range $probe := list "startupProbe" "livenessProbe" "readinessProbe" -}}
{{- $_ := set $defaults $probe (include "curtail.otherProbeFields" (list (get $defaults $probe) (get $pod $probe)) | fromYaml) -}}
{{- end -}}
{{- range $context := list "podSecurityContext" "securityContext" -}}
{{- range $profile := list "seccompProfile" "appArmorProfile" -}}
{{- if get (default dict (get $pod $context)) $profile -}}
{{- $_ := set $defaults $context (omit (default dict (get $defaults $context)) $profile) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- mergeOverwrite $added $defaults (deepCopy $pod) | toYaml -}}
{{- end -}}

{{/* (list probe replacement): the probe, without its handler if the replacement has one, as YAML. */}}
{{- define "curtail.otherProbeFields" -}}
{{- $probe := default dict (index . 0) -}}
{{- $handlers := list "exec" "grpc" "httpGet" "tcpSocket" -}}
{{- range keys (default dict (index . 1)) -}}
{{- if has . $handlers }}{{ $probe = omit $probe "exec" "grpc" "httpGet" "tcpSocket" }}{{ end -}}
{{- end -}}
{{- toYaml $probe -}}
{{- end -}}

{{/*
The checksum of the ConfigMap that a pod reads only when it starts. It ignores the version in the labels (its value
here is that of the first release): an upgrade restarts the pod only if the configuration has changed.
*/}}
{{- define "curtail.configChecksum" -}}
{{- regexReplaceAll "(app[.]kubernetes[.]io/version: |helm[.]sh/chart: .*?-)[0-9]+[.][0-9]+[.][0-9].*" . "${1}0.1.0" | sha256sum -}}
{{- end -}}

{{/* (list root component pod [checksums]): metadata of a pod template. */}}
{{- define "curtail.podMetadata" -}}
{{- $root := index . 0 -}}
{{- $pod := include "curtail.podValues" (list $root (index . 2)) | fromYaml -}}
{{- $annotations := $pod.annotations -}}
{{- if gt (len .) 3 }}{{ $annotations = mergeOverwrite (deepCopy $annotations) (index . 3) }}{{ end -}}
labels:
  {{- $labels := mergeOverwrite (dict "app.kubernetes.io/part-of" "curtail") $root.Values.commonLabels $pod.labels }}
  {{- mergeOverwrite $labels (include "curtail.selectorLabels" (list $root (index . 1)) | fromYaml) | toYaml | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* (list root component pod user [mountsToken]): the first fields of a pod's specification. */}}
{{- define "curtail.podSpec" -}}
{{- $spec := (include "curtail.podValues" (list (index . 0) (index . 2)) | fromYaml).spec -}}
{{- if $spec -}}
{{- mergeOverwrite (include "curtail.podFields" . | fromYaml) $spec | toYaml -}}
{{- else -}}
{{- include "curtail.podFields" . -}}
{{- end -}}
{{- end -}}

{{/* (list root component pod user [mountsToken]): these fields without those that the values add. */}}
{{- define "curtail.podFields" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $user := index . 3 -}}
{{- $pod := include "curtail.podValues" (list $root (index . 2)) | fromYaml -}}
serviceAccountName: {{ include "curtail.serviceAccountName" (list $root $component) | quote }}
automountServiceAccountToken: {{ gt (len .) 4 }}
enableServiceLinks: false
{{- with concat $root.Values.global.imagePullSecrets $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "curtail.podSecurity" (list $root $pod $user) | nindent 2 }}
{{- with $pod.schedulerName }}
schedulerName: {{ . | quote }}
{{- end }}
{{- with $pod.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $pod.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with $pod.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- else }}
{{- if eq $component "edge" }}
# Host names are fully qualified: trying the search domains first would only add latency.
dnsConfig:
  options:
    - { name: ndots, value: "2" }
{{- end }}
{{- end }}
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

{{/* `true` if the user and group ids of pods are those that OpenShift assigns to the namespace, else empty. */}}
{{- define "curtail.omitsUser" -}}
{{- $mode := default "auto" (((.Values.global).compatibility).openshift).adaptSecurityContext -}}
{{- if or (eq $mode "force") (and (eq $mode "auto") (.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}
true
{{- end -}}
{{- end -}}

{{/* (list root pod user): the security context of a pod; `pod` as "curtail.podValues" returns it. */}}
{{- define "curtail.podSecurity" -}}
{{- $user := index . 2 -}}
{{- $context := dict "runAsNonRoot" true "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- if not (include "curtail.omitsUser" (index . 0)) -}}
{{- $context = merge $context (dict "runAsUser" $user "runAsGroup" $user "fsGroup" $user) -}}
{{- end -}}
{{- mergeOverwrite $context (default dict (index . 1).podSecurityContext) | toYaml -}}
{{- end -}}

{{/* (list root pod): the security context of every container of the pod. */}}
{{- define "curtail.containerSecurity" -}}
{{- $pod := include "curtail.podValues" . | fromYaml -}}
{{- $context := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "runAsNonRoot" true -}}
{{- $context = set $context "capabilities" (dict "drop" (list "ALL")) -}}
securityContext:
  {{- mergeOverwrite $context (default dict $pod.securityContext) | toYaml | nindent 2 }}
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

{{/* Probes of a role that serves its admin port. */}}
{{- define "curtail.roleProbes" -}}
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

{{/*
(list root pod probes): the probes of the main container, each with the fields that the values replace.
A handler in the values, such as `exec`, replaces the chart's handler.
*/}}
{{- define "curtail.probes" -}}
{{- $pod := include "curtail.podValues" . | fromYaml -}}
{{- range $name, $probe := index . 2 | fromYaml }}
{{- $given := default dict (get $pod $name) }}
{{ $name }}:
  {{- mergeOverwrite (include "curtail.otherProbeFields" (list $probe $given) | fromYaml) $given | toYaml | nindent 2 }}
{{- end }}
{{- end -}}

{{/* (list root pod): envFrom of the main container, if the values set it. */}}
{{- define "curtail.envFrom" -}}
{{- with include "curtail.extra" (list (index . 0) (index . 1) "extraEnvFrom") -}}
envFrom:
  {{- . | nindent 2 }}
{{- end -}}
{{- end -}}
