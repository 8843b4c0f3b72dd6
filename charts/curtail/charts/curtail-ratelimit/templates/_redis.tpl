{{/* Redis: the bundled servers, and how the roles connect to an external Redis. */}}

{{/* (list bundled policy): the whole configuration. */}}
{{- define "curtail.redisConf" -}}
# Redis 7.0 or later. No persistence: after a restart the cache is empty and counters are zero.
bind * -::*
port 6379
protected-mode no
daemonize no
dir /data
save ""
appendonly no
maxmemory {{ (index . 0).maxMemory }}
maxmemory-policy {{ index . 1 }}
maxclients 4000
tcp-keepalive 60
timeout 0
{{- end -}}

{{/* (list root component policy client...): all objects of a bundled Redis, which these components use. */}}
{{- define "curtail.bundledRedis" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $ofPods := list $root $component -}}
---
{{- include "curtail.redisConfigMap" . }}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "curtail.metadata" $ofPods | nindent 2 }}
spec:
  selector:
    {{- include "curtail.selectorLabels" $ofPods | nindent 4 }}
  ports:
    - { name: redis, port: 6379, targetPort: redis }
{{- if $root.Values.networkPolicy.enabled }}
---
{{ include "curtail.networkPolicyHeader" $ofPods }}
  ingress:
    - from:
        {{- include "curtail.peers" (prepend (slice . 3) $root) | trim | nindent 8 }}
      ports:
        {{- include "curtail.tcpPorts" (list 6379) | trim | nindent 8 }}
  egress: []
{{- end }}
---
{{ include "curtail.redisStatefulSet" . }}
{{- end -}}

{{- define "curtail.redisConfigMap" }}
{{- $root := index . 0 }}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "curtail.metadata" (list $root (index . 1)) | nindent 2 }}
data:
  redis.conf: |
    {{- include "curtail.redisConf" (list (index $root.Values (index . 1)).bundled (index . 2)) | nindent 4 }}
{{ end -}}

{{/* (list root component policy): a StatefulSet, so that two servers never run at the same time. */}}
{{- define "curtail.redisStatefulSet" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $bundled := (index $root.Values $component).bundled -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  {{- include "curtail.metadata" (list $root $component) | nindent 2 }}
spec:
  replicas: 1
  serviceName: {{ include "curtail.fullname" $root }}-{{ $component }}
  # An upgrade replaces a pod that does not become ready, instead of waiting for it.
  podManagementPolicy: Parallel
  selector:
    matchLabels:
      {{- include "curtail.selectorLabels" (list $root $component) | nindent 6 }}
  template:
    metadata:
      {{- include "curtail.podMetadata" (list $root $component $bundled.pod (dict "checksum/config" (include "curtail.redisConfigMap" . | include "curtail.configChecksum"))) | nindent 6 }}
    spec:
      {{- include "curtail.podSpec" (list $root $component $bundled.pod 999) | nindent 6 }}
      terminationGracePeriodSeconds: 10
      {{- with include "curtail.extra" (list $root $bundled.pod "extraInitContainers") }}
      initContainers:
        {{- . | nindent 8 }}
      {{- end }}
      containers:
        - name: redis
          {{- include "curtail.containerImage" (list $root $bundled.image) | nindent 10 }}
          command: [/usr/local/bin/redis-server, /etc/redis/redis.conf]
          {{- with include "curtail.extra" (list $root $bundled.pod "extraArgs") }}
          args:
            {{- . | nindent 12 }}
          {{- end }}
          {{- with include "curtail.extra" (list $root $bundled.pod "extraEnv") }}
          env:
            {{- . | nindent 12 }}
          {{- end }}
          ports:
            - { name: redis, containerPort: 6379 }
          {{- include "curtail.envFrom" (list $root $bundled.pod) | nindent 10 }}
          {{- include "curtail.probes" (list $root $bundled.pod (include "curtail.redisProbes" $root)) | nindent 10 }}
          {{- include "curtail.containerSecurity" (list $root $bundled.pod) | nindent 10 }}
          resources:
            {{- toYaml $bundled.resources | nindent 12 }}
          volumeMounts:
            - { name: config, mountPath: /etc/redis, readOnly: true }
            - { name: data, mountPath: /data }
            {{- include "curtail.extra" (list $root $bundled.pod "extraVolumeMounts") | nindent 12 }}
        {{- include "curtail.extra" (list $root $bundled.pod "extraContainers") | nindent 8 }}
      volumes:
        - name: config
          configMap:
            name: {{ include "curtail.fullname" $root }}-{{ $component }}
        - name: data
          emptyDir: { sizeLimit: 64Mi }
        {{- include "curtail.extra" (list $root $bundled.pod "extraVolumes") | nindent 8 }}
{{- end -}}

{{- define "curtail.redisProbes" -}}
startupProbe:
  tcpSocket: { port: redis }
  periodSeconds: 1
  failureThreshold: 60
readinessProbe:
  exec:
    command: [/usr/local/bin/redis-cli, ping]
  periodSeconds: 10
  timeoutSeconds: 5
livenessProbe:
  tcpSocket: { port: redis }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}

{{- define "curtail.countersEnv" -}}
{{- $external := .Values.counters.external -}}
- { name: REDIS_SOCKET_TYPE, value: tcp }
{{- if eq .Values.counters.mode "bundled" }}
- { name: REDIS_URL, value: "{{ include "curtail.fullname" . }}-counters:6379" }
{{- else }}
- { name: REDIS_TYPE, value: {{ $external.type }} }
- { name: REDIS_TLS, value: {{ $external.tls | quote }} }
{{- if $external.existingSecret }}
- { name: REDIS_URL_FILE, value: /etc/curtail/redis/url }
{{- else }}
- { name: REDIS_URL, value: {{ $external.url | quote }} }
{{- end }}
{{- if $external.authKey }}
- { name: REDIS_AUTH_FILE, value: /etc/curtail/redis/auth }
{{- end }}
{{- if $external.sentinelAuthKey }}
- { name: REDIS_SENTINEL_AUTH_FILE, value: /etc/curtail/redis/sentinel-auth }
{{- end }}
{{- if $external.caSecret }}
- { name: REDIS_TLS_CACERT, value: /etc/curtail/redis-tls/ca.crt }
{{- end }}
{{- end }}
{{- end -}}

{{/* (cache or counters): mounts of an external Redis. */}}
{{- define "curtail.redisMounts" -}}
{{- if eq .mode "external" }}
{{- if .external.existingSecret }}
- { name: redis, mountPath: /etc/curtail/redis, readOnly: true }
{{- end }}
{{- if .external.caSecret }}
- { name: redis-tls, mountPath: /etc/curtail/redis-tls, readOnly: true }
{{- end }}
{{- end }}
{{- end -}}

{{/* (cache or counters): volumes of an external Redis. */}}
{{- define "curtail.redisVolumes" -}}
{{- if eq .mode "external" }}
{{- if .external.existingSecret }}
- name: redis
  secret:
    secretName: {{ .external.existingSecret | quote }}
    defaultMode: 0440
    items:
      - { key: {{ .external.urlKey | quote }}, path: url }
      {{- with .external.authKey }}
      - { key: {{ . | quote }}, path: auth }
      {{- end }}
      {{- with .external.sentinelAuthKey }}
      - { key: {{ . | quote }}, path: sentinel-auth }
      {{- end }}
{{- end }}
{{- if .external.caSecret }}
- name: redis-tls
  secret:
    secretName: {{ .external.caSecret | quote }}
    defaultMode: 0440
    items:
      - { key: ca.crt, path: ca.crt }
{{- end }}
{{- end }}
{{- end -}}
