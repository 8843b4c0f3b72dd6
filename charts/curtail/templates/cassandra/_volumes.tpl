{{/* (root): fails before the upgrade changes anything: the API server rejects other volumes of a StatefulSet. */}}
{{- define "curtail.checkVolumes" -}}
{{- $name := printf "%s-cassandra" (include "curtail.fullname" .) -}}
{{- $storage := .Values.cassandra.bundled.storage -}}
{{- with lookup "apps/v1" "StatefulSet" (include "curtail.namespace" .) $name -}}
{{- $claim := (first .spec.volumeClaimTemplates).spec -}}
{{- $size := $claim.resources.requests.storage -}}
{{- if or (ne (include "curtail.bytes" $size) (include "curtail.bytes" $storage.size)) (ne (default "" $claim.storageClassName) (default "" $storage.className)) -}}
{{- fail (printf `

cassandra.bundled.storage must not change: the StatefulSet %[1]s has the size %[2]s and the
class %[3]q. To enlarge its volumes, first resize the volume claims data-%[1]s-*, if their class
allows it, and delete the StatefulSet without its pods; then upgrade:

  kubectl -n %[4]s delete statefulset %[1]s --cascade=orphan
` $name $size (default "" $claim.storageClassName) (include "curtail.namespace" $)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
