{{/* The bundled Redis servers: one process each, without persistence. */}}

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

{{/* (list root component bundled checksum): a StatefulSet, so that two servers never run at the same time. */}}
{{- define "curtail.redisStatefulSet" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $bundled := index . 2 -}}
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
      {{- include "curtail.podMetadata" (list $root $component $bundled.pod (dict "checksum/config" (index . 3))) | nindent 6 }}
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
          {{- include "curtail.containerSecurity" $root | nindent 10 }}
          resources:
            {{- toYaml $bundled.resources | nindent 12 }}
          volumeMounts:
            - { name: config, mountPath: /etc/redis, readOnly: true }
            - { name: data, mountPath: /data }
            {{- include "curtail.extra" (list $root $bundled.pod "extraVolumeMounts") | nindent 12 }}
      volumes:
        - name: config
          configMap:
            name: {{ include "curtail.fullname" $root }}-{{ $component }}
        - name: data
          emptyDir: { sizeLimit: 64Mi }
        {{- include "curtail.extra" (list $root $bundled.pod "extraVolumes") | nindent 8 }}
{{- end -}}
