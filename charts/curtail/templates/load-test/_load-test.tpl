{{/* The Job of a load test. It is not retried: a run that misses its thresholds has failed. */}}
{{- define "curtail.loadTestJob" -}}
{{- $test := .Values.loadTest -}}
backoffLimit: 0
activeDeadlineSeconds: {{ $test.deadlineSeconds | int }}
template:
  metadata:
    {{- include "curtail.podMetadata" (list . "load-test" $test.pod) | nindent 4 }}
  spec:
    {{- include "curtail.podSpec" (list . "load-test" $test.pod 65532) | nindent 4 }}
    restartPolicy: Never
    {{- with include "curtail.extra" (list . $test.pod "extraInitContainers") }}
    initContainers:
      {{- . | nindent 6 }}
    {{- end }}
    containers:
      - name: k6
        {{- include "curtail.containerImage" (list . $test.image) | nindent 8 }}
        command: [/usr/bin/k6, run, --quiet, --no-color, --no-usage-report, /scripts/{{ $test.scenario }}.ts]
        {{- with include "curtail.extra" (list . $test.pod "extraArgs") }}
        args:
          {{- . | nindent 10 }}
        {{- end }}
        env:
          - { name: BASE_URL, value: {{ include "curtail.loadTestUrl" . | quote }} }
          - { name: SHAPE, value: {{ $test.shape }} }
          - { name: OUT_FOLDER, value: /results }
          - { name: K6_AUTO_EXTENSION_RESOLUTION, value: "false" }
          {{- if ($test.apiKey).existingSecret }}
          - name: API_KEY
            valueFrom:
              secretKeyRef: { name: {{ $test.apiKey.existingSecret | quote }}, key: {{ $test.apiKey.key | quote }} }
          {{- end }}
          {{- range $name, $value := $test.env }}
          - { name: {{ $name | quote }}, value: {{ $value | quote }} }
          {{- end }}
          {{- include "curtail.extra" (list . $test.pod "extraEnv") | nindent 10 }}
        {{- include "curtail.envFrom" (list . $test.pod) | nindent 8 }}
        {{- include "curtail.containerSecurity" (list . $test.pod) | nindent 8 }}
        resources:
          {{- toYaml $test.resources | nindent 10 }}
        volumeMounts:
          - { name: scripts, mountPath: /scripts, readOnly: true }
          - { name: results, mountPath: /results }
          {{- include "curtail.extra" (list . $test.pod "extraVolumeMounts") | nindent 10 }}
    volumes:
      - name: scripts
        configMap: { name: {{ include "curtail.fullname" . }}-load-test }
      - name: results
        emptyDir: { sizeLimit: 256Mi }
      {{- include "curtail.extra" (list . $test.pod "extraVolumes") | nindent 6 }}
{{- end -}}

{{/* The target of the load. Only behind one trusted hop do simulated clients have their own addresses. */}}
{{- define "curtail.loadTestUrl" -}}
{{- if .Values.loadTest.baseUrl -}}
{{ .Values.loadTest.baseUrl }}
{{- else if or (ne (int .Values.edge.trustedHops) 1) .Values.edge.proxyProtocol -}}
{{- fail (printf "loadTest.run needs edge.trustedHops 1 and edge.proxyProtocol false, as k6 acts as the trusted proxy, or a loadTest.baseUrl: they are %d and %t" (int .Values.edge.trustedHops) .Values.edge.proxyProtocol) -}}
{{- else -}}
http://{{ include "curtail.fullname" . }}-edge:{{ .Values.edge.service.httpPort | int }}
{{- end -}}
{{- end -}}
