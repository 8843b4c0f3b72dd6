{{/* (root): fails before the upgrade changes anything: the API server rejects other volumes of a StatefulSet. */}}
{{- define "curtail.checkVolumes" -}}
{{- $name := printf "%s-cassandra" (include "curtail.fullname" .) -}}
{{- $storage := .Values.cassandra.bundled.storage -}}
{{- with lookup "apps/v1" "StatefulSet" .Release.Namespace $name -}}
{{- $claim := (first .spec.volumeClaimTemplates).spec -}}
{{- $size := $claim.resources.requests.storage -}}
{{- if or (ne (include "curtail.bytes" $size) (include "curtail.bytes" $storage.size)) (ne (default "" $claim.storageClassName) (default "" $storage.className)) -}}
{{- fail (printf `

cassandra.bundled.storage must not change: the StatefulSet %[1]s has the size %[2]s and the
class %[3]q. To enlarge its volumes, first resize the volume claims data-%[1]s-*, if their class
allows it, and delete the StatefulSet without its pods; then upgrade:

  kubectl -n %[4]s delete statefulset %[1]s --cascade=orphan
` $name $size (default "" $claim.storageClassName) $.Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (quantity): a quantity of bytes in any unit, for comparisons; the API server may round it up. */}}
{{- define "curtail.bytes" -}}
{{- $units := dict "" 1 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 -}}
{{- $units = merge $units (dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976) -}}
{{- $quantity := ternary (printf "%.0f" .) (toString .) (kindIs "float64" .) -}}
{{- mulf (regexFind "^[0-9.]+" $quantity) (get $units (regexFind "[A-Za-z]*$" $quantity)) | ceil -}}
{{- end -}}
