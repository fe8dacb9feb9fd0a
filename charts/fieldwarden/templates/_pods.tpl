{{/* What the pods of both components have in common. */}}

{{- define "fieldwarden.image" -}}
{{- $image := .Values.image -}}
{{- $name := $image.repository -}}
{{- with $image.registry }}{{ $name = printf "%s/%s" (trimSuffix "/" .) $name }}{{ end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $name $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* (dict "root" $ "component" "webhook"): what stands in a pod's spec beside containers and volumes. */}}
{{- define "fieldwarden.pod" -}}
{{- $values := index .root.Values .component -}}
serviceAccountName: {{ include "fieldwarden.account" . }}
# The Services' variables would read as settings: they begin with FIELDWARDEN_ too.
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "fieldwarden.container" -}}
image: {{ include "fieldwarden.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
{{- end -}}

{{/* Flags that say which policies there are: the controller registers what the webhook judges. */}}
{{- define "fieldwarden.policyFlags" -}}
{{- if include "fieldwarden.files" . }}
- --policies=/etc/fieldwarden/policies
{{- end }}
{{- if .Values.policies.fromCluster }}
- --policies-from-cluster
{{- end }}
{{- if .Values.policies.strict }}
- --strict
{{- end }}
{{- end -}}

{{- define "fieldwarden.policyMount" -}}
{{- if include "fieldwarden.files" . }}
- {name: policies, mountPath: /etc/fieldwarden/policies, readOnly: true}
{{- end }}
{{- end -}}

{{- define "fieldwarden.policyVolume" -}}
{{- if include "fieldwarden.files" . }}
- name: policies
  projected:
    defaultMode: 0444
    sources:
    {{- if include "fieldwarden.ownFiles" . }}
    - configMap: {name: {{ include "fieldwarden.fullname" . }}-policies}
    {{- end }}
    {{- with .Values.policies.existingConfigMap }}
    - configMap: {name: {{ . }}}
    {{- end }}
{{- end }}
{{- end -}}
