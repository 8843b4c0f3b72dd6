{{/* Jobs. A Job cannot be changed: those that are made at once are named by what is in them. */}}

{{/* (root): the migrate Job. It waits for Cassandra itself, and ends with 1 where it is refused. */}}
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
        {{- include "curtail.containerSecurity" . | nindent 8 }}
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

{{/* Replicas of the keyspace, where we may make it. */}}
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

{{/* (list root pool): a Job that fills a pool and ends. Killed or run twice, it does no harm. */}}
{{- define "curtail.refillJob" -}}
{{- $root := index . 0 -}}
{{- $pool := index . 1 -}}
{{- $pod := $root.Values.pools.pod -}}
backoffLimit: 6
activeDeadlineSeconds: {{ $root.Values.pools.deadlineSeconds | int }}
podFailurePolicy:
  rules:
    - action: Ignore
      onPodConditions:
        - { type: DisruptionTarget, status: "True" }
template:
  metadata:
    {{- include "curtail.podMetadata" (list $root "pools" $pod) | nindent 4 }}
  spec:
    {{- include "curtail.podSpec" (list $root "pools" $pod 65532) | nindent 4 }}
    restartPolicy: Never
    initContainers:
      {{- include "curtail.extra" (list $root $pod "extraInitContainers") | nindent 6 }}
      {{- include "curtail.waitForSchema" (list $root $root.Values.pools.resources) | nindent 6 }}
    containers:
      - name: refill
        {{- include "curtail.containerImage" (list $root $root.Values.image) | nindent 8 }}
        {{- include "curtail.command" (list 128 "refill") | nindent 8 }}
        {{- with include "curtail.extra" (list $root $pod "extraArgs") }}
        args:
          {{- . | nindent 10 }}
        {{- end }}
        env:
          {{- include "curtail.cassandraEnv" $root | trim | nindent 10 }}
          - { name: CODE_POOL, value: {{ $pool.name | quote }} }
          - { name: CODE_SECRET_FILE, value: /etc/curtail/code-secret/secret }
          - { name: POOL_TARGET, value: {{ $pool.target | int | quote }} }
          - { name: LOG_LEVEL, value: {{ $root.Values.logLevel }} }
          {{- include "curtail.extra" (list $root $pod "extraEnv") | nindent 10 }}
        {{- include "curtail.containerSecurity" $root | nindent 8 }}
        resources:
          {{- toYaml $root.Values.pools.resources | nindent 10 }}
        volumeMounts:
          - { name: code-secret, mountPath: /etc/curtail/code-secret, readOnly: true }
          {{- include "curtail.cassandraMounts" $root | trim | nindent 10 }}
          {{- include "curtail.extra" (list $root $pod "extraVolumeMounts") | nindent 10 }}
    volumes:
      - name: code-secret
        secret:
          secretName: {{ include "curtail.codeSecret" $root }}
          defaultMode: 0440
          items:
            - { key: {{ $root.Values.pools.codeSecret.key }}, path: secret }
      {{- include "curtail.cassandraVolumes" $root | trim | nindent 6 }}
      {{- include "curtail.extra" (list $root $pod "extraVolumes") | nindent 6 }}
{{- end -}}

{{/* (pool name): the part of a name that stands for a pool. */}}
{{- define "curtail.poolSlug" -}}
{{- $slug := lower . | replace "/" "-" | replace "." "-" | replace "_" "-" -}}
{{- if and (eq $slug .) (le (len $slug) 17) -}}
{{ $slug }}
{{- else -}}
{{ $slug | trunc 10 | trimAll "-" }}-{{ sha256sum . | trunc 6 }}
{{- end -}}
{{- end -}}
