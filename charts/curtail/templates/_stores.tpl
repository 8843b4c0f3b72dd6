{{/* How the roles connect to Cassandra and the cache: environment, mounts and volumes. */}}

{{- define "curtail.cassandraHosts" -}}
{{- $cassandra := .Values.cassandra -}}
{{- if eq $cassandra.mode "external" -}}
{{ join "," $cassandra.external.contactPoints }}
{{- else if eq $cassandra.mode "k8ssandra" -}}
{{ include "curtail.k8ssandraName" . }}-{{ $cassandra.localDataCenter }}-service
{{- else -}}
{{ include "curtail.fullname" . }}-cassandra
{{- end -}}
{{- end -}}

{{/* The cluster's name as cass-operator uses it in names of objects. */}}
{{- define "curtail.k8ssandraName" -}}
{{ .Values.cassandra.k8ssandra.clusterName | lower | replace " " "" | replace "_" "" }}
{{- end -}}

{{- define "curtail.cassandraPort" -}}
{{ ternary .Values.cassandra.external.port 9042 (eq .Values.cassandra.mode "external") | int }}
{{- end -}}

{{/* Name of the Secret with the user name and password for Cassandra; empty: no credentials. */}}
{{- define "curtail.cassandraAuth" -}}
{{- if .Values.cassandra.auth.existingSecret -}}
{{ .Values.cassandra.auth.existingSecret }}
{{- else if eq .Values.cassandra.mode "k8ssandra" -}}
{{ include "curtail.k8ssandraName" . }}-superuser
{{- end -}}
{{- end -}}

{{- define "curtail.cassandraEnv" -}}
- { name: CASSANDRA_CONTACT_POINTS, value: {{ include "curtail.cassandraHosts" . | quote }} }
- { name: CASSANDRA_PORT, value: {{ include "curtail.cassandraPort" . | quote }} }
- { name: CASSANDRA_LOCAL_DC, value: {{ .Values.cassandra.localDataCenter | quote }} }
- { name: CASSANDRA_KEYSPACE, value: {{ .Values.cassandra.keyspace | quote }} }
- { name: CASSANDRA_SERIAL, value: {{ .Values.cassandra.serial | quote }} }
{{- with include "curtail.cassandraAuth" . }}
- name: CASSANDRA_USERNAME
  valueFrom:
    secretKeyRef: { name: {{ . | quote }}, key: {{ $.Values.cassandra.auth.usernameKey | quote }} }
- { name: CASSANDRA_PASSWORD_FILE, value: /etc/curtail/cassandra/password }
{{- end }}
{{- if .Values.cassandra.tls.enabled }}
- { name: CASSANDRA_TLS_CA, value: /etc/curtail/cassandra-tls/ca.crt }
{{- if .Values.cassandra.tls.clientCertificate }}
- { name: CASSANDRA_TLS_CERT, value: /etc/curtail/cassandra-tls/tls.crt }
- { name: CASSANDRA_TLS_KEY, value: /etc/curtail/cassandra-tls/tls.key }
{{- end }}
{{- end }}
{{- end -}}

{{- define "curtail.cassandraMounts" -}}
{{- if include "curtail.cassandraAuth" . }}
- { name: cassandra, mountPath: /etc/curtail/cassandra, readOnly: true }
{{- end }}
{{- if .Values.cassandra.tls.enabled }}
- { name: cassandra-tls, mountPath: /etc/curtail/cassandra-tls, readOnly: true }
{{- end }}
{{- end -}}

{{- define "curtail.cassandraVolumes" -}}
{{- with include "curtail.cassandraAuth" . }}
- name: cassandra
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0440
    items:
      - { key: {{ $.Values.cassandra.auth.passwordKey | quote }}, path: password }
{{- end }}
{{- with .Values.cassandra.tls }}
{{- if .enabled }}
- name: cassandra-tls
  secret:
    secretName: {{ .existingSecret | quote }}
    defaultMode: 0440
    items:
      - { key: {{ .caKey | quote }}, path: ca.crt }
      {{- if .clientCertificate }}
      - { key: {{ .certKey | quote }}, path: tls.crt }
      - { key: {{ .keyKey | quote }}, path: tls.key }
      {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "curtail.cacheEnv" -}}
{{- $external := .Values.cache.external -}}
{{- if eq .Values.cache.mode "bundled" }}
- { name: REDIS_URL, value: "redis://{{ include "curtail.fullname" . }}-cache:6379" }
{{- else }}
{{- if $external.existingSecret }}
- { name: REDIS_URL_FILE, value: /etc/curtail/redis/url }
{{- else }}
- { name: REDIS_URL, value: {{ $external.url | quote }} }
{{- end }}
{{- if $external.sentinelAuthKey }}
- { name: REDIS_SENTINEL_AUTH_FILE, value: /etc/curtail/redis/sentinel-auth }
{{- end }}
{{- if $external.caSecret }}
- { name: REDIS_TLS_CACERT, value: /etc/curtail/redis-tls/ca.crt }
{{- end }}
{{- end }}
{{- end -}}

{{- define "curtail.cassandraProbes" -}}
startupProbe:
  tcpSocket: { port: cql }
  periodSeconds: 2
  failureThreshold: 300
readinessProbe:
  tcpSocket: { port: cql }
  periodSeconds: 5
  timeoutSeconds: 5
livenessProbe:
  tcpSocket: { port: cql }
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 12
{{- end -}}

{{/* (list root resources pod): an init container that waits for the schema of this version. */}}
{{- define "curtail.waitForSchema" -}}
{{- $root := index . 0 -}}
- name: wait-for-schema
  {{- include "curtail.containerImage" (list $root $root.Values.image) | nindent 2 }}
  {{- include "curtail.command" (list 128 "migrate" "--wait") | nindent 2 }}
  env:
    {{- include "curtail.cassandraEnv" $root | trim | nindent 4 }}
    - { name: LOG_LEVEL, value: {{ $root.Values.logLevel }} }
  {{- include "curtail.containerSecurity" (list $root (index . 2)) | nindent 2 }}
  resources:
    {{- toYaml (index . 1) | nindent 4 }}
  {{- with include "curtail.cassandraMounts" $root | trim }}
  volumeMounts:
    {{- . | nindent 4 }}
  {{- end }}
{{- end -}}
