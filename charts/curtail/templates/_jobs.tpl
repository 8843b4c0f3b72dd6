{{/* Jobs. A Job is immutable, so the names of Jobs of the release contain a hash of their specification. */}}

{{/* (root): the migrate Job. It waits until Cassandra is available, and exits with 1 if Cassandra rejects it. */}}
{{- define "curtail.migrateJob" -}}
{{- $pod := .Values.migrate.pod -}}
backoffLimit: 20
podFailurePolicy:
  rules:
    - action: Ignore
      onPodConditions:
        - { type: DisruptionTarget, status: "True" }
template:
  metadata:
    {{- include "curtail.podMetadata" (list . "migrate" $pod) | nindent 4 }}
  spec:
    {{- include "curtail.podSpec" (list . "migrate" $pod 65532) | nindent 4 }}
    restartPolicy: Never
    {{- with include "curtail.extra" (list . $pod "extraInitContainers") }}
    initContainers:
      {{- . | nindent 6 }}
    {{- end }}
    containers:
      - name: migrate
        {{- include "curtail.containerImage" (list . .Values.image) | nindent 8 }}
        {{- include "curtail.command" (list 128 "migrate") | nindent 8 }}
        {{- with include "curtail.extra" (list . $pod "extraArgs") }}
        args:
          {{- . | nindent 10 }}
        {{- end }}
        env:
          {{- include "curtail.cassandraEnv" . | trim | nindent 10 }}
          {{- with include "curtail.replication" . }}
          - { name: CASSANDRA_REPLICATION, value: {{ . | quote }} }
          {{- end }}
          - { name: LOG_LEVEL, value: {{ .Values.logLevel }} }
          {{- include "curtail.extra" (list . $pod "extraEnv") | nindent 10 }}
        {{- include "curtail.envFrom" (list . $pod) | nindent 8 }}
        {{- include "curtail.containerSecurity" (list . $pod) | nindent 8 }}
        resources:
          {{- toYaml .Values.migrate.resources | nindent 10 }}
        {{- with printf "%s\n%s" (include "curtail.cassandraMounts" .) (include "curtail.extra" (list . $pod "extraVolumeMounts")) | trim }}
        volumeMounts:
          {{- . | nindent 10 }}
        {{- end }}
    {{- with printf "%s\n%s" (include "curtail.cassandraVolumes" .) (include "curtail.extra" (list . $pod "extraVolumes")) | trim }}
    volumes:
      {{- . | nindent 6 }}
    {{- end }}
{{- end -}}

{{/* Replication of the keyspace, if the migrate Job may create it. */}}
{{- define "curtail.replication" -}}
{{- $cassandra := .Values.cassandra -}}
{{- if $cassandra.replication -}}
{{ $cassandra.replication }}
{{- else if eq $cassandra.mode "bundled" -}}
{{ $cassandra.localDataCenter }}:{{ min 3 $cassandra.bundled.replicas }}
{{- else if eq $cassandra.mode "k8ssandra" -}}
{{ $cassandra.localDataCenter }}:{{ min 3 $cassandra.k8ssandra.size }}
{{- end -}}
{{- end -}}

{{/* (list root pool): a Job that fills a pool and exits. It is safe to kill it and to run it twice. */}}
{{- define "curtail.refillJob" -}}
backoffLimit: 6
activeDeadlineSeconds: {{ (index . 0).Values.pools.deadlineSeconds | int }}
podFailurePolicy:
  rules:
    - action: Ignore
      onPodConditions:
        - { type: DisruptionTarget, status: "True" }
template:
  {{- include "curtail.refillPod" . | nindent 2 }}
{{- end -}}

{{/*
(list root [pool]): the pod template of a refill. Without a pool it is the controller's template, to
which the controller adds the settings of a pool and the name of its Secret.
*/}}
{{- define "curtail.refillPod" -}}
{{- $root := index . 0 -}}
{{- $pod := $root.Values.pools.pod -}}
metadata:
  {{- include "curtail.podMetadata" (list $root "pools" $pod) | nindent 2 }}
spec:
  {{- include "curtail.podSpec" (list $root "pools" $pod 65532) | nindent 2 }}
  restartPolicy: Never
  initContainers:
    {{- include "curtail.extra" (list $root $pod "extraInitContainers") | nindent 4 }}
    {{- include "curtail.waitForSchema" (list $root $root.Values.pools.resources $pod) | nindent 4 }}
  containers:
    - name: refill
      {{- include "curtail.containerImage" (list $root $root.Values.image) | nindent 6 }}
      {{- include "curtail.command" (list 128 "refill") | nindent 6 }}
      {{- with include "curtail.extra" (list $root $pod "extraArgs") }}
      args:
        {{- . | nindent 8 }}
      {{- end }}
      env:
        {{- include "curtail.cassandraEnv" $root | trim | nindent 8 }}
        - { name: CODE_SECRET_FILE, value: /etc/curtail/code-secret/secret }
        {{- range rest . }}
        - { name: CODE_POOL, value: {{ .name | quote }} }
        - { name: POOL_TARGET, value: {{ .target | int | quote }} }
        {{- end }}
        - { name: LOG_LEVEL, value: {{ $root.Values.logLevel }} }
        {{- include "curtail.extra" (list $root $pod "extraEnv") | nindent 8 }}
      {{- include "curtail.envFrom" (list $root $pod) | nindent 6 }}
      {{- include "curtail.containerSecurity" (list $root $pod) | nindent 6 }}
      resources:
        {{- toYaml $root.Values.pools.resources | nindent 8 }}
      volumeMounts:
        - { name: code-secret, mountPath: /etc/curtail/code-secret, readOnly: true }
        {{- include "curtail.cassandraMounts" $root | trim | nindent 8 }}
        {{- include "curtail.extra" (list $root $pod "extraVolumeMounts") | nindent 8 }}
  volumes:
    - name: code-secret
      secret:
        secretName: {{ include "curtail.codeSecret" $root | quote }}
        defaultMode: 0440
        items:
          - { key: {{ $root.Values.pools.codeSecret.key | quote }}, path: secret }
    {{- include "curtail.cassandraVolumes" $root | trim | nindent 4 }}
    {{- include "curtail.extra" (list $root $pod "extraVolumes") | nindent 4 }}
{{- end -}}

{{/* (pool name): the pool's name as it is used in names of objects. */}}
{{- define "curtail.poolSlug" -}}
{{- $slug := lower . | replace "/" "-" | replace "." "-" | replace "_" "-" -}}
{{- if and (eq $slug .) (le (len $slug) 17) -}}
{{ $slug }}
{{- else -}}
{{ $slug | trunc 10 | trimAll "-" }}-{{ sha256sum . | trunc 6 }}
{{- end -}}
{{- end -}}

{{/* (pool): the level, in codes, below which the pool is refilled. */}}
{{- define "curtail.lowWater" -}}
{{ default (max 1000 (div (int64 .target) 2)) .lowWater | int64 }}
{{- end -}}
