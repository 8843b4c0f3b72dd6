{{/* The specification of the CassandraDatacenter, with the settings that docs/cassandra.md requires. */}}
{{- define "curtail.k8ssandraSpec" -}}
{{- $k8ssandra := .Values.cassandra.k8ssandra -}}
clusterName: {{ $k8ssandra.clusterName | quote }}
serverType: cassandra
serverVersion: {{ $k8ssandra.serverVersion | quote }}
size: {{ $k8ssandra.size | int }}
managementApiAuth:
  insecure: {}
resources:
  {{- toYaml $k8ssandra.resources | nindent 2 }}
storageConfig:
  cassandraDataVolumeClaimSpec:
    {{- with $k8ssandra.storage.className }}
    storageClassName: {{ . | quote }}
    {{- end }}
    accessModes: [ReadWriteOnce]
    resources:
      requests:
        storage: {{ $k8ssandra.storage.size }}
config:
  cassandra-yaml:
    num_tokens: 16
    paxos_variant: v2
    storage_compatibility_mode: NONE
    commitlog_sync: group
    commitlog_sync_group_window: 5ms
    cas_contention_timeout: 1800ms
    write_request_timeout: 2000ms
    read_request_timeout: 2000ms
    disk_failure_policy: die
    commit_failure_policy: die
{{- end -}}
