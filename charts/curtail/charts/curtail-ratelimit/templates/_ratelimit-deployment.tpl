{{/* The pods of the rate limiter, and where they read the rules. */}}

{{- define "curtail.rulesEnv" -}}
{{- $xds := .Values.ratelimit.xds | default dict }}
{{- $source := include "curtail.rulesSource" . }}
{{- if eq $source "policies" }}
{{- include "curtail.policiesEnv" . }}
{{- else if eq $source "xds" }}
- { name: CONFIG_TYPE, value: GRPC_XDS_SOTW }
- { name: CONFIG_GRPC_XDS_SERVER_URL, value: {{ $xds.server | quote }} }
- { name: CONFIG_GRPC_XDS_NODE_ID, value: {{ $xds.nodeId | quote }} }
{{- if $xds.tlsSecret }}
- { name: CONFIG_GRPC_XDS_SERVER_USE_TLS, value: "true" }
- { name: CONFIG_GRPC_XDS_SERVER_TLS_CACERT, value: /etc/curtail/xds-tls/ca.crt }
- { name: CONFIG_GRPC_XDS_CLIENT_TLS_CERT, value: /etc/curtail/xds-tls/tls.crt }
- { name: CONFIG_GRPC_XDS_CLIENT_TLS_KEY, value: /etc/curtail/xds-tls/tls.key }
{{- end }}
{{- else }}
- { name: RUNTIME_ROOT, value: /etc/curtail/runtime }
- { name: RUNTIME_SUBDIRECTORY, value: ratelimit }
- { name: RUNTIME_WATCH_ROOT, value: "false" }
- { name: RUNTIME_IGNOREDOTFILES, value: "true" }
{{- end }}
{{- with include "curtail.requiredDomain" . }}
# Rules of another domain would admit every request, so they are rejected like invalid rules.
- { name: REQUIRED_DOMAIN, value: {{ . }} }
{{- end }}
{{- end -}}

{{- define "curtail.ratelimitDeployment" -}}
{{- $source := include "curtail.rulesSource" . -}}
{{- $extraEnv := include "curtail.extra" (list . .Values.ratelimit.pod "extraEnv") -}}
{{- $hasAdmin := and (hasKey .Values "admin") (not (contains "name: ADMIN_TOKEN" $extraEnv)) -}}
# A pod is available once Envoy has resolved its address.
{{ include "curtail.deployment" (list . "ratelimit" .Values.dnsSeconds) }}
  template:
    metadata:
      {{- include "curtail.podMetadata" (list . "ratelimit" .Values.ratelimit.pod) | nindent 6 }}
    spec:
      {{- include "curtail.podSpec" (list . "ratelimit" .Values.ratelimit.pod 65532) | nindent 6 }}
      terminationGracePeriodSeconds: {{ add .Values.dnsSeconds 30 }}
      {{- with include "curtail.extra" (list . .Values.ratelimit.pod "extraInitContainers") }}
      initContainers:
        {{- . | nindent 8 }}
      {{- end }}
      containers:
        - name: ratelimit
          {{- include "curtail.containerImage" (list . .Values.image) | nindent 10 }}
          {{- include "curtail.command" (list .Values.ratelimit.heapMebibytes "ratelimit") | nindent 10 }}
          {{- with include "curtail.extra" (list . .Values.ratelimit.pod "extraArgs") }}
          args:
            {{- . | nindent 12 }}
          {{- end }}
          env:
            - { name: GRPC_PORT, value: "8081" }
            - { name: PORT, value: "8080" }
            - { name: DEBUG_PORT, value: "6070" }
            - { name: ADMIN_PORT, value: "9090" }
            {{- if $hasAdmin }}
            # For the admin API, and for `limit reset` in the pod.
            - { name: ADMIN_TOKEN_FILE, value: /etc/curtail/admin/token }
            {{- end }}
            {{- with .Values.baseUrl }}
            - { name: BASE_URL, value: {{ . | quote }} }
            {{- end }}
            {{- include "curtail.rulesEnv" . | trim | nindent 12 }}
            - { name: RULES_COPY, value: /var/lib/curtail/rules.json }
            # A pod without any rules starts, is not ready, and reports the reason.
            - { name: FORCE_START_WITHOUT_INITIAL_CONFIG, value: "true" }
            - { name: HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED, value: "true" }
            - { name: LIMIT_REPLICAS, value: {{ include "curtail.replicasMax" (list .Values.ratelimit) | quote }} }
            - { name: LIMIT_DEADLINE_MS, value: {{ .Values.ratelimit.deadlineMs | int | quote }} }
            - { name: USE_STATSD, value: "false" }
            {{- include "curtail.countersEnv" . | trim | nindent 12 }}
            - { name: LOG_LEVEL, value: {{ .Values.logLevel }} }
            {{- $extraEnv | nindent 12 }}
          {{- include "curtail.envFrom" (list . .Values.ratelimit.pod) | nindent 10 }}
          ports:
            - { name: grpc, containerPort: 8081 }
            - { name: http, containerPort: 8080 }
            - { name: debug, containerPort: 6070 }
            - { name: metrics, containerPort: 9090 }
          # DNS drops the pod immediately, but requests arrive until Envoy re-resolves the name.
          lifecycle:
            preStop:
              sleep: { seconds: {{ .Values.dnsSeconds | int }} }
          {{- include "curtail.probes" (list . .Values.ratelimit.pod (include "curtail.roleProbes" .)) | nindent 10 }}
          {{- include "curtail.containerSecurity" (list . .Values.ratelimit.pod) | nindent 10 }}
          resources:
            {{- toYaml .Values.ratelimit.resources | nindent 12 }}
          volumeMounts:
            {{- if (.Values.ratelimit.xds).tlsSecret }}
            - { name: xds-tls, mountPath: /etc/curtail/xds-tls, readOnly: true }
            {{- end }}
            # Not by subPath: the kubelet replaces the whole folder when the rules change.
            {{- if eq $source "file" }}
            - { name: rules, mountPath: /etc/curtail/runtime/ratelimit/config, readOnly: true }
            {{- else if eq $source "policies" }}
            - { name: xds-version, mountPath: /etc/curtail/xds-version, readOnly: true }
            {{- end }}
            {{- if $hasAdmin }}
            - { name: admin, mountPath: /etc/curtail/admin, readOnly: true }
            {{- end }}
            # The last valid rules, for a restarted container.
            - { name: rules-copy, mountPath: /var/lib/curtail }
            {{- include "curtail.redisMounts" .Values.counters | trim | nindent 12 }}
            {{- include "curtail.extra" (list . .Values.ratelimit.pod "extraVolumeMounts") | nindent 12 }}
        {{- include "curtail.extra" (list . .Values.ratelimit.pod "extraContainers") | nindent 8 }}
      volumes:
        {{- with (.Values.ratelimit.xds).tlsSecret }}
        - name: xds-tls
          secret:
            secretName: {{ . | quote }}
            defaultMode: 0440
            items:
              - { key: ca.crt, path: ca.crt }
              - { key: tls.crt, path: tls.crt }
              - { key: tls.key, path: tls.key }
        {{- end }}
        {{- if eq $source "file" }}
        - name: rules
          configMap:
            name: {{ default (printf "%s-ratelimit" (include "curtail.fullname" .)) .Values.ratelimit.existingRules | quote }}
        {{- else if eq $source "policies" }}
        - name: xds-version
          secret:
            secretName: {{ include "curtail.versionSecret" . }}
            optional: true
            defaultMode: 0440
        {{- end }}
        {{- if $hasAdmin }}
        - name: admin
          secret:
            secretName: {{ include "curtail.adminSecret" . | quote }}
            defaultMode: 0440
            items:
              - { key: {{ .Values.admin.key | quote }}, path: token }
        {{- end }}
        - name: rules-copy
          emptyDir: { sizeLimit: 64Mi }
        {{- include "curtail.redisVolumes" .Values.counters | trim | nindent 8 }}
        {{- include "curtail.extra" (list . .Values.ratelimit.pod "extraVolumes") | nindent 8 }}
{{- end -}}
